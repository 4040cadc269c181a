/** Lists all slash commands of the screen, and finds the one that a typed text calls. */

import { wrapText } from '@tidemark/terminal/render/text'
import { toPageRows } from '../screen/panel.ts'
import type { ChatContext, SlashCommand } from './chat-context.ts'
import { compactCommand } from './command-compact.ts'
import { contextCommand } from './command-context.ts'
import { historyCommand } from './command-history.ts'
import { modelCommand } from './command-model.ts'
import { permissionsCommand, sandboxCommand } from './command-permissions.ts'
import { redoCommand, rewindCommand, undoCommand } from './commands-branch.ts'
import { clearCommand, exitCommand, forkCommand, resumeCommand, retryCommand } from './commands-session.ts'
import {
  agentsCommand,
  costCommand,
  exportCommand,
  hooksCommand,
  mcpCommand,
  memoryCommand,
  notesCommand,
  skillsCommand,
} from './commands-view.ts'
import { showOpenableItems } from './openable-items.ts'

const helpCommand: SlashCommand = {
  name: 'help',
  args: '',
  description: 'list commands and keys',
  async run(chat) {
    const rows = (width: number) => toPageRows(formatHelp(chat, width))
    await chat.screen.openPanel({ title: 'Help', rows, actions: [] })
  },
}

const openCommand: SlashCommand = {
  name: 'open',
  args: '',
  description: 'open a compaction, a clearing, a cache break or a tool call (Ctrl-T)',
  run: showOpenableItems,
}

const COMMANDS: readonly SlashCommand[] = [
  helpCommand,
  compactCommand,
  undoCommand,
  redoCommand,
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
  permissionsCommand,
  sandboxCommand,
  hooksCommand,
  mcpCommand,
  agentsCommand,
  skillsCommand,
  exportCommand,
  retryCommand,
  exitCommand,
]

export function listScreenCommands(): readonly SlashCommand[] {
  return COMMANDS
}

/** Returns the screen command that a text calls; null if the text is a prompt or calls a command from a file. */
export function findScreenCommand(text: string): { run(chat: ChatContext): Promise<void> } | null {
  const [, name, args = ''] = /^\/([a-z]+)(?:\s+([\s\S]*))?$/.exec(text) ?? []
  const command = COMMANDS.find((one) => one.name === name)
  return command === undefined ? null : { run: (chat) => command.run(chat, args.trim()) }
}

const KEYS: readonly (readonly [string, string])[] = [
  ['Enter', 'send; while a turn runs, the text waits in a queue'],
  ['Shift-Enter, Ctrl-J, \\ Enter', 'new line'],
  ['Up, Down', 'earlier prompts'],
  ['Up, messages queued', 'take the newest one back'],
  ['@ and Tab', 'complete a path; its file is attached'],
  ['!command', 'run a shell command; the model sees it with your next prompt'],
  ['?', 'this help'],
  ['Escape', 'interrupt the turn'],
  ['Shift-Tab', 'switch the permission mode'],
  ['Ctrl-C', 'clear the input, or interrupt; twice: exit'],
  ['Ctrl-D', 'exit, if the input is empty'],
  ['Ctrl-O', 'unfold and fold the results of tools'],
  ['Ctrl-T', 'open what was done to the context, and tool calls'],
]

/** Minimum columns to show names and descriptions side by side. */
const WIDE = 80

function formatHelp({ theme: { colors } }: ChatContext, columns: number): string {
  const rows = COMMANDS.map(({ name, args, description }) => [
    `/${name}${args === '' ? '' : ` ${args}`}`,
    description,
  ])
  const width = Math.max(...[...rows, ...KEYS].map(([name = '']) => name.length)) + 2
  const format = ([name = '', text = '']: readonly string[]): string => {
    if (columns < WIDE) return `${colors.cyan(name)}\n${wrapText(text, columns, '  ').join('\n')}`
    const mark = `  ${name.padEnd(width)}`
    const [first = '', ...others] = wrapText(text, columns, mark)
    return [`${colors.cyan(mark)}${first.slice(mark.length)}`, ...others].join('\n')
  }
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
