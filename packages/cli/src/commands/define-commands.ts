/** The commands about past sessions, as arguments and options. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { readSince, SORT_KEYS } from 'tidemark'
import { renderSample, reportSample } from '../pages/sample-page.ts'
import { readSample } from '../sample-session.ts'
import { colorsFor, type Terminal } from '../terminal.ts'
import type { CompactChoices } from './compact-options.ts'
import { type ExportChoices, exportSession } from './export.ts'
import { type InspectChoices, inspect } from './inspect.ts'
import { repair } from './repair.ts'
import { deleteSessions, findSessions, listSessions } from './sessions.ts'

/** How a command came out, for the process to end with. */
export interface Outcome {
  code: number
}

export function addSessionCommands(program: Command, terminal: Terminal, outcome: Outcome): void {
  addInspect(program, terminal, outcome)
  addCompact(program, terminal, outcome)
  addSessions(program, terminal, outcome)
  addRepair(program, terminal, outcome)
  addExport(program, terminal, outcome)
}

function addInspect(program: Command, terminal: Terminal, outcome: Outcome): void {
  program
    .command('inspect')
    .description('show where the context and the money of past sessions went')
    .argument(
      '[paths...]',
      'files and folders; without any, the newest sessions of Claude Code, Codex and Tidemark',
    )
    .option(
      '--session <which>',
      'of several sessions this one: its number in the table, or the beginning of its id',
    )
    .addOption(new Option('--sort <by>', 'order of the table').choices([...SORT_KEYS]))
    .option('--limit <rows>', 'sessions in the table, 0 for all', wholeNumber)
    .option(
      '--since <when>',
      'only sessions used since then, and totals from that day on: 7d, 12h, 2026-11-01',
      moment,
    )
    .option('--json', 'print one JSON value: { sessions, totals, unreadable, notRead }')
    .action(async (paths: readonly string[], choices: InspectChoices) => {
      outcome.code = await inspect(paths, choices, terminal)
    })
}

function addSessions(program: Command, terminal: Terminal, outcome: Outcome): void {
  const sessions = program.command('sessions').description("list, search and delete Tidemark's own sessions")
  sessions
    .command('list', { isDefault: true })
    .description('list them, newest first')
    .option('--json', 'print one JSON value: { home, sessions }')
    .action(async (choices: { readonly json?: boolean }) => {
      outcome.code = await listSessions(choices, terminal)
    })
  sessions
    .command('find')
    .description('show where they say something')
    .argument('<text>', 'what to look for; capitals make no difference')
    .option('--json', 'print one JSON value: { home, matches }')
    .action(async (text: string, choices: { readonly json?: boolean }) => {
      outcome.code = await findSessions(text, choices, terminal)
    })
  sessions
    .command('delete')
    .description('delete them for good, with what belongs to them')
    .argument('<ids...>', 'whole ids, as the list has them')
    .option('--yes', 'do not ask')
    .action(async (ids: readonly string[], choices: { readonly yes?: boolean }) => {
      outcome.code = await deleteSessions(ids, choices, terminal)
    })
}

function addExport(program: Command, terminal: Terminal, outcome: Outcome): void {
  program
    .command('export')
    .description('write a session as Markdown: all that was said, with rewrites, calls and ids')
    .argument('<file>', 'a session of Tidemark, Claude Code or Codex')
    .option('-o, --output <file>', 'a new file; without it, standard output')
    .option('--title <text>', 'the heading; the id of the session without it')
    .option('--no-redact', 'leave credentials as they are')
    .option('--json', 'print one JSON value: { records, markdown }, with -o { path, out, records }')
    .action(async (file: string, choices: ExportChoices) => {
      outcome.code = await exportSession(file, choices, terminal)
    })
}

function addRepair(program: Command, terminal: Terminal, outcome: Outcome): void {
  program
    .command('repair')
    .description('write a clean copy of a damaged session; the session itself is only read')
    .argument('<file>', 'a session of Tidemark or Claude Code')
    .requiredOption('-o, --output <file>', 'the copy; nothing is ever overwritten')
    .option('--json', 'print one JSON value: what was left out, mended and completed')
    .action(async (file: string, choices: { readonly output: string; readonly json?: boolean }) => {
      outcome.code = await repair(file, choices, terminal)
    })
}

function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('Expected a whole number.')
  return Number(text)
}

function moment(text: string): number {
  const found = readSince(text, Date.now())
  if (found === null)
    throw new InvalidArgumentError('Expected a span as in 7d or 12h, or a day as in 2026-11-01.')
  return found
}

// `tidemark compact` as arguments and options.

export function addCompact(program: Command, terminal: Terminal, outcome: { code: number }): void {
  program
    .command('compact')
    .description(
      'compact a session: shows plan, draft and receipt; -o writes a session that goes on from there',
    )
    .argument(
      '<file>',
      'a session of Tidemark, Claude Code or Codex; of these only Tidemark’s own are ever written',
    )
    .option('--at <uuid>', 'as of this record, moved back to where a conversation may be cut')
    .option('--from <uuid>', 'summarise from this record on, and keep what comes before')
    .option('--up-to <uuid>', 'summarise what comes before this record, and keep the rest')
    .option('--instructions <text>', 'what a model that writes the summary should pay attention to')
    .addOption(
      new Option('--summarizer <who>', 'who writes the summary').choices(['local', 'model']).default('local'),
    )
    .option('--target <tokens>', 'tokens that the conversation may have afterwards', tokenCount)
    .option('--ledger <tokens>', 'tokens of the ledger of names in use; 1,500 without it', ledgerTokens)
    .option('--model <name>', 'the model it goes on with; what the log says without it')
    .option('--window <tokens>', 'the context window of that model', tokenCount)
    .option('--base-url <url>', 'with --summarizer model: where it is asked, such as tidemark simulate')
    .option(
      '--session <which>',
      'of several sessions in a folder this one: its number, or the beginning of its id',
    )
    .option('--dry-run', 'write nothing')
    .option('-o, --output <file>', 'a new session that goes on from there, with all that came before in it')
    .option('--force', 'with -o: replace a file that is there; with --undo: also where it no longer fits')
    .option('--undo <id>', 'take this compaction or clearing back instead')
    .option('--yes', 'do not ask before a session of Tidemark’s own is written')
    .option('--full', 'show the whole draft')
    .option(
      '--json',
      'print one JSON value: { tokensBefore, tokensAfter, summary, ledger, messages, receipt, trace, … }',
    )
    .action(async (file: string, choices: CompactChoices) => {
      const { compact } = await import('./compact.ts')
      outcome.code = await compact(file, choices, terminal)
    })
}

function tokenCount(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('Expected a whole number of tokens.')
  return Number(text)
}

function ledgerTokens(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('Expected a whole number of tokens.')
  return Number(text)
}

// `tidemark start`: what a session looks like, before there is one of your own.

export function start(options: { readonly json?: boolean }, terminal: Terminal): void {
  const sample = readSample()
  if (options.json === true) terminal.write(`${JSON.stringify(reportSample(sample), null, 2)}\n`)
  else terminal.write(renderSample(sample, { colors: colorsFor(terminal), columns: terminal.columns }))
}
