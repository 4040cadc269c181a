/** `tidemark compact` as arguments and options. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Terminal } from '../terminal.ts'
import type { CompactChoices } from './compact-choices.ts'

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
