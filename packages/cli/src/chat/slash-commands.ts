/** All slash commands of the screen, and how one is found in what the user types. */

import { type ChatContext, type SlashCommand, showPage } from './chat-context.ts'
import { contextCommand } from './command-context.ts'
import { compactCommand, rewindCommand, undoCommand } from './commands-rewrite.ts'
import {
  clearCommand,
  exitCommand,
  forkCommand,
  modelCommand,
  resumeCommand,
  retryCommand,
} from './commands-session.ts'
import {
  agentsCommand,
  costCommand,
  exportCommand,
  historyCommand,
  hooksCommand,
  mcpCommand,
  memoryCommand,
  notesCommand,
  skillsCommand,
} from './commands-view.ts'
import { openLines } from './open-lines.ts'

const helpCommand: SlashCommand = {
  name: 'help',
  args: '',
  description: 'list commands and keys',
  run: (chat) => showPage(chat, 'Help', formatHelp(chat)),
}

const openCommand: SlashCommand = {
  name: 'open',
  args: '',
  description: 'open a compaction, a clearing, a cache break or a tool call (Ctrl-T)',
  run: openLines,
}

const COMMANDS: readonly SlashCommand[] = [
  helpCommand,
  compactCommand,
  undoCommand,
  contextCommand,
  costCommand,
  rewindCommand,
  forkCommand,
  resumeCommand,
  clearCommand,
  memoryCommand,
  notesCommand,
  modelCommand,
  historyCommand,
  openCommand,
  hooksCommand,
  mcpCommand,
  agentsCommand,
  skillsCommand,
  exportCommand,
  retryCommand,
  exitCommand,
]

export function listCommands(): readonly SlashCommand[] {
  return COMMANDS
}

/** Returns the command that a text calls; null if it is a prompt, or a command that is a file. */
export function findCommand(text: string): { run(chat: ChatContext): Promise<void> } | null {
  const [, name, args = ''] = /^\/([a-z]+)(?:\s+([\s\S]*))?$/.exec(text) ?? []
  const command = COMMANDS.find((one) => one.name === name)
  return command === undefined ? null : { run: (chat) => command.run(chat, args.trim()) }
}

const KEYS: readonly (readonly [string, string])[] = [
  ['Enter', 'send; while a turn runs, the text waits in a queue'],
  ['Shift-Enter, Ctrl-J, \\ Enter', 'new line'],
  ['Up, Down', 'earlier prompts'],
  ['@ and Tab', 'complete a path'],
  ['Escape', 'interrupt the turn'],
  ['Ctrl-C', 'clear the input, or interrupt; twice: exit'],
  ['Ctrl-D', 'exit, if the input is empty'],
  ['Ctrl-O', 'unfold and fold the results of tools'],
  ['Ctrl-T', 'open what was done to the context, and tool calls'],
]

function formatHelp({ theme: { colors } }: ChatContext): string {
  const rows = COMMANDS.map(({ name, args, description }) => [
    `/${name}${args === '' ? '' : ` ${args}`}`,
    description,
  ])
  const width = Math.max(...[...rows, ...KEYS].map(([name = '']) => name.length)) + 2
  const format = ([name = '', text = '']: readonly string[]): string =>
    `  ${colors.cyan(name.padEnd(width))}${text}`
  return [
    colors.bold('Commands'),
    ...rows.map(format),
    '',
    colors.bold('Keys'),
    ...KEYS.map(format),
    '',
    colors.bold('The meter'),
    '  █ used · ┊ warning · ▲ automatic compaction · ┃ no further request',
    '  Percent left are until automatic compaction. The cache is warm until the countdown ends.',
  ].join('\n')
}
