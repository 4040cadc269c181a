/**
 * Slash commands: a prompt such as `/review src/a.ts` that stands for the text of a file. The user's own words, the name
 * and the arguments, are logged apart from that text, so that only they count as typed (`user-input.ts`).
 */
import { type Block, isTextBlock, type MessageContent, type TextBlock, toBlocks } from '../log/block.ts'

interface SlashCommand {
  /** The name without the slash, such as `review` or `frontend:review`. */
  readonly name: string
  /** Everything after the name, as typed; empty if there is nothing. */
  readonly args: string
}

const COMMAND = /^\/([A-Za-z0-9][\w.:-]*)(?:\s+([\s\S]*))?$/

/** Reads a prompt as a slash command; null if it is none. A path such as `/etc/hosts` is none. */
export function parseSlashCommand(prompt: string): SlashCommand | null {
  const [, name, args = ''] = COMMAND.exec(prompt.trim()) ?? []
  return name === undefined ? null : { name, args: args.trim() }
}

/** Splits arguments at blanks, but not in quotes around a word, as in `"two words" name='a b'`. Such quotes are dropped. */
export function splitArguments(args: string): readonly string[] {
  const words = args.matchAll(/([^\s"']*=)?(?:"([^"]*)"|'([^']*)')(?=\s|$)|(\S+)/g)
  return [...words].map(([, name = '', double, single, plain]) => plain ?? name + (double ?? single ?? ''))
}

/**
 * Puts the arguments in place of `$ARGUMENTS`, `$1`, `$2` and so on; one that is missing leaves nothing. What stands in an
 * argument is never read again, so that an argument cannot name another.
 */
export function expandArguments(text: string, args: string): string {
  const words = splitArguments(args)
  return text.replace(ARGUMENT, (_, number?: string) =>
    number === undefined ? args : (words[Number(number) - 1] ?? ''),
  )
}

const ARGUMENT = /\$(?:ARGUMENTS\b|([1-9])(?!\d))/g

export function hasArgumentPlace(text: string): boolean {
  return new RegExp(ARGUMENT.source).test(text)
}

/** A part of a file: text for the model, or a shell command whose output stands in its place. */
type PromptPart = { readonly text: string } | { readonly command: string }

/**
 * Splits a text at its shell commands: `` !`git status` `` at the start of a line or after a blank, or the lines of a
 * fence that begins with ```` ```! ````. Other fences are examples, and nothing in them is a command.
 */
export function splitShellParts(text: string): readonly PromptPart[] {
  const parts: PromptPart[] = []
  let fence = ''
  let script: string[] | null = null
  for (const line of text.match(/[^\n]*\n|[^\n]+$/g) ?? []) {
    const [, mark = '', bang = ''] = /^\s{0,3}(```+|~~~+)(!?)/.exec(line) ?? []
    if (fence === '' && mark !== '') {
      fence = mark
      if (bang === '!') script = []
      else addText(parts, line)
    } else if (fence !== '' && mark.startsWith(fence)) {
      if (script === null) addText(parts, line)
      else parts.push({ command: script.join('').trim() }, { text: '\n' })
      script = null
      fence = ''
    } else if (script !== null) script.push(line)
    else if (fence !== '') addText(parts, line)
    else splitLine(parts, line)
  }
  // A fence that is never closed is no command.
  if (script !== null) addText(parts, script.join(''))
  return parts
}

function splitLine(parts: PromptPart[], line: string): void {
  let end = 0
  for (const found of line.matchAll(/(?<=^|\s)!`([^`\n]+)`/g)) {
    addText(parts, line.slice(end, found.index))
    parts.push({ command: (found[1] ?? '').trim() })
    end = found.index + found[0].length
  }
  addText(parts, line.slice(end))
}

function addText(parts: PromptPart[], text: string): void {
  const last = parts.at(-1)
  if (last !== undefined && 'text' in last) parts[parts.length - 1] = { text: last.text + text }
  else if (text !== '') parts.push({ text })
}

// The message of a command: its name and arguments in one block, the text of its file in another.

const CONTENTS = 'command-contents'

/** Creates the message of a slash command. `contents`: the text of its file, with arguments and output in place. */
export function createCommandMessage({ name, args }: SlashCommand, contents: string): readonly TextBlock[] {
  // The message stands before the name: that is how a command without arguments counts as typed.
  const typed = [
    `<command-message>${name}</command-message>`,
    `<command-name>/${name}</command-name>`,
    `<command-args>${args}</command-args>`,
  ].join('\n')
  const defused = contents.replace(/<(?=\/?command-contents)/gi, '&lt;')
  return [
    { type: 'text', text: typed },
    { type: 'text', text: `<${CONTENTS}>\n${defused}\n</${CONTENTS}>` },
  ]
}

/** Reads a message that `createCommandMessage` created: name, arguments and the text of the file. Null if it is another. */
export function readCommandMessage(
  content: MessageContent,
): (SlashCommand & { readonly contents: string }) | null {
  const [typed, contents] = toBlocks(content).filter((block: Block): block is TextBlock => isTextBlock(block))
  const [, name, args] =
    /^<command-message>[^<]*<\/command-message>\n<command-name>\/([^<]*)<\/command-name>\n<command-args>([\s\S]*)<\/command-args>$/.exec(
      typed?.text ?? '',
    ) ?? []
  const text = /^<command-contents>\n([\s\S]*)\n<\/command-contents>$/.exec(contents?.text ?? '')?.[1]
  return name === undefined || args === undefined || text === undefined
    ? null
    : { name, args, contents: text }
}
