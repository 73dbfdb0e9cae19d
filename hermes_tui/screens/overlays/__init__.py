"""What lies on a screen for a moment: lists to choose from and cards with a question. Each loaded when it is opened."""
