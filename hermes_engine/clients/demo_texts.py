"""What the demo model says, in English and Spanish. Data only; these are a model's words, not the interface's."""

from __future__ import annotations

from dataclasses import dataclass

LABEL = "demo model: scripted, no intelligence"
SUMMARY_ASKED = "Summarise the conversation"
SUMMARY = "Summary by the demo model, which can only copy what was asked:\n{lines}"
SLOW_COMMAND = 'for n in 1 2 3 4 5; do echo "step $n of 5"; sleep 1; done'
CHECK_COMMAND = "python3 -c \"assert sorted([3, 1, 2]) == [1, 2, 3]; print('1 check passed')\""


@dataclass(frozen=True, slots=True)
class Words:
    """Every text in one language; braces are filled in."""

    greeting: str
    plain: str
    plain_thought: str
    result_thought: str
    said: str
    error: str
    look_before: str
    look_thought: str
    read_thought: str
    listed: str
    more: str
    peek: str
    write_before: str
    write_thought: str
    written: str
    file_content: str
    run_before: str
    run_thought: str
    ran: str
    code_before: str
    code_thought: str
    code_after: str
    code_untried: str
    plan_thought: str
    planned: str
    steps: tuple[str, str, str]
    spawn_thought: str
    spawned: str
    errands: tuple[str, ...]
    question: str
    choices: tuple[str, ...]
    cards: tuple[str, ...]


ENGLISH = Words(
    greeting="Hello! I can list files, write a small file, run a short command or write a function. "
    "Try `list the files here`.",
    plain="""## {topic}

I know nothing about this: my answers are written in advance. This one shows what an answer can hold.

- **Lists** with _emphasis_ and `code`
- Links such as [the project](https://example.org)
- Several lines, also nested:
  - one
  - two

```python
def greet(name: str) -> str:
    return f"Hello, {{name}}!"
```

| Ask me | and I |
|---|---|
| `list the files here` | look and tell what is there |
| `create a file` | write `hermes-demo.txt` |
| `write a function for primes` | write it and try it |
| `run something slow` | run a command for five seconds |

> For real answers set up a model with `/model`.""",
    plain_thought="No tool is needed for this. I give the prepared answer: a heading, a list, code and a table.",
    result_thought="The tool has answered; I tell what it found and add nothing of my own.",
    said="The tool answered:\n\n{result}",
    error="the demo model was asked for an error (HTTP {status})",
    look_before="I look at what is here.",
    look_thought="The question is about files, so I list the folder before I say anything.",
    read_thought="There is a {name}; its first lines say what this folder is about.",
    listed="## What is here\n\n{count} entries.\n\n{shown}\n\n| kind | count |\n|---|---|\n"
    "| files | {files} |\n| folders | {folders} |\n\n{peek}",
    more="\n- … and {count} more",
    peek="The first lines of `{name}`:\n\n{text}",
    write_before="I write a small file, `{name}`.",
    write_thought="Something is to be written. One small file is enough to show how edits are asked for and shown.",
    written="That was `{name}`. The tool answered:\n\n{result}",
    file_content="Written by the demo model of Hermes.\n\nYou asked: {topic}\n",
    run_before="I run a short command.",
    run_thought="A command is to be run. I take a harmless one of my own, whatever the project is.",
    ran="The command is done. It was one of mine, not the project's own tests:\n\n{result}",
    code_before="I write it and try it.",
    code_thought="A program is asked for. I write `{name}` and check it with an example before I answer.",
    code_after="## `{name}`\n\n{block}\n\nTried with an example, the tool answered:\n\n{output}",
    code_untried="{block}\n\nNo tool to try it is on offer, so I did not.",
    plan_thought="The work has several steps; I keep them in a plan.",
    planned="The plan as it stands:\n\n{result}",
    steps=("look at the folder", "write a first version", "check it"),
    spawn_thought="The work falls into parts that do not need each other, so each goes to an agent of its own.",
    spawned="The agents have reported:\n\n{result}",
    errands=("List the files here.", "Write a function that finds palindromes.", "Say hello."),
    question="Which way shall I go?",
    choices=("the short one", "the thorough one"),
    cards=("list the files for: {topic}", "write a file for: {topic}", "run the checks of: {topic}"),
)

SPANISH = Words(
    greeting="¡Hola! Puedo listar archivos, escribir un archivo pequeño, ejecutar una orden corta o escribir una "
    "función. Prueba con `lista los archivos`.",
    plain="""## {topic}

De esto no sé nada: mis respuestas están escritas de antemano. Esta muestra lo que cabe en una respuesta.

- **Listas** con _énfasis_ y `código`
- Enlaces como [el proyecto](https://example.org)
- Varias líneas, también anidadas:
  - una
  - dos

```python
def saluda(nombre: str) -> str:
    return f"¡Hola, {{nombre}}!"
```

| Pídeme | y yo |
|---|---|
| `lista los archivos` | miro y digo lo que hay |
| `crea un archivo` | escribo `hermes-demo.txt` |
| `escribe una función de primos` | la escribo y la pruebo |
| `ejecuta algo lento` | ejecuto una orden de cinco segundos |

> Para respuestas de verdad, elige un modelo con `/model`.""",
    plain_thought="No hace falta ninguna herramienta. Doy la respuesta preparada, con título, lista, código y tabla.",
    result_thought="La herramienta ha contestado; cuento lo que encontró y no añado nada mío.",
    said="La herramienta contestó:\n\n{result}",
    error="se pidió un error al modelo de demostración (HTTP {status})",
    look_before="Miro lo que hay aquí.",
    look_thought="La pregunta trata de archivos, así que listo la carpeta antes de decir nada.",
    read_thought="Hay un {name}; sus primeras líneas dicen de qué va esta carpeta.",
    listed="## Lo que hay aquí\n\n{count} entradas.\n\n{shown}\n\n| clase | cantidad |\n|---|---|\n"
    "| archivos | {files} |\n| carpetas | {folders} |\n\n{peek}",
    more="\n- … y {count} más",
    peek="Las primeras líneas de `{name}`:\n\n{text}",
    write_before="Escribo un archivo pequeño, `{name}`.",
    write_thought="Hay que escribir algo. Un archivo pequeño basta para ver cómo se piden y se muestran los cambios.",
    written="Era `{name}`. La herramienta contestó:\n\n{result}",
    file_content="Escrito por el modelo de demostración de Hermes.\n\nPediste: {topic}\n",
    run_before="Ejecuto una orden corta.",
    run_thought="Hay que ejecutar algo. Tomo una orden mía, inofensiva, sea cual sea el proyecto.",
    ran="La orden ha terminado. Era una de las mías, no las pruebas del proyecto:\n\n{result}",
    code_before="La escribo y la pruebo.",
    code_thought="Se pide un programa. Escribo `{name}` y lo compruebo con un ejemplo antes de contestar.",
    code_after="## `{name}`\n\n{block}\n\nProbada con un ejemplo, la herramienta contestó:\n\n{output}",
    code_untried="{block}\n\nNo se ofrece ninguna herramienta para probarla, así que no lo hice.",
    plan_thought="El trabajo tiene varios pasos; los llevo en un plan.",
    planned="El plan, tal como está:\n\n{result}",
    steps=("mirar la carpeta", "escribir una primera versión", "comprobarla"),
    spawn_thought="El trabajo se divide en partes que no se necesitan entre sí; cada una va a su propio agente.",
    spawned="Los agentes han informado:\n\n{result}",
    errands=("Lista los archivos de esta carpeta.", "Escribe una función que encuentre palíndromos.", "Saluda."),
    question="¿Por qué camino voy?",
    choices=("el corto", "el minucioso"),
    cards=("lista los archivos para: {topic}", "crea un archivo para: {topic}", "ejecuta las pruebas de: {topic}"),
)
