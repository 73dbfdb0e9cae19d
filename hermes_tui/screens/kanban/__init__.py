"""The board as a screen: columns of cards that live, one card in full, a goal planned into cards."""
