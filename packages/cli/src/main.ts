/**
 * The command line: from arguments to an exit code. 0 done, 1 failed, 2 wrong use. With `--json` a command
 * prints one JSON value on standard output and nothing else there.
 */
import { Command, CommanderError, InvalidArgumentError } from 'commander'
import manifest from '../package.json' with { type: 'json' }
import { askedOf } from './asked-command.ts'
import { addSessionCommands, type Outcome } from './commands/session-commands.ts'
import type { SimulateChoices } from './commands/simulate.ts'
import { start } from './commands/start.ts'
import { inOneLine, tellFailure } from './failure.ts'
import { colorsFor, type Terminal, wantsColors } from './terminal.ts'

const DONE = 0
const FAILED = 1
const WRONG_USE = 2
/** As a shell reports a process that Ctrl-C ended. */
export const INTERRUPTED = 130

export async function main(args: readonly string[], terminal: Terminal): Promise<number> {
  const program = createProgram(terminal)
  const outcome: Outcome = { code: DONE }
  addSessionCommands(program, terminal, outcome)
  addSimulate(program, terminal, outcome)
  addStart(program, terminal)
  addTour(program, terminal, outcome)
  nameHelp(program, program.name())
  try {
    await program.parseAsync(args.length === 0 ? ['--help'] : [...askedOf(program, args)], { from: 'user' })
    return outcome.code
  } catch (error) {
    if (terminal.interrupted?.aborted === true) return INTERRUPTED
    if (error instanceof CommanderError) return error.exitCode === 0 ? DONE : WRONG_USE
    tellFailure(error, terminal)
    return FAILED
  }
}

function createProgram(terminal: Terminal): Command {
  const colors = colorsFor(terminal)
  return new Command('tidemark')
    .description('A context engine for long-running LLM agents.')
    .version(manifest.version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'print the help of a command')
    .exitOverride()
    .configureHelp({
      styleTitle: colors.bold,
      styleSubcommandTerm: colors.cyan,
      styleOptionTerm: colors.cyan,
    })
    .configureOutput({
      writeOut: (text) => terminal.write(text),
      writeErr: (text) => terminal.warn(text),
      getOutHelpWidth: () => terminal.columns,
      getErrHelpWidth: () => terminal.columns,
      getOutHasColors: () => wantsColors(terminal),
      getErrHasColors: () => wantsColors(terminal),
    })
}

/** Whoever uses a command wrongly is sent to the help of that command. */
function nameHelp(command: Command, path: string): void {
  command.configureOutput({
    outputError: (text, write) => write(`tidemark: ${wrongUse(text)} See ${path} --help.\n`),
  })
  for (const one of command.commands) nameHelp(one, `${path} ${one.name()}`)
}

/** Commander's message in one line, as a sentence. */
function wrongUse(text: string): string {
  const line = inOneLine(text.replace(/^error: /, ''))
  return /[.?)]$/.test(line) ? line : `${line}.`
}

function addSimulate(program: Command, terminal: Terminal, outcome: Outcome): void {
  program
    .command('simulate')
    .description('serve the Messages API on this machine, with a scripted model and a true prompt cache')
    .option('--port <number>', 'port to listen on; any free one without it', portNumber)
    .option(
      '--script <file>',
      'a scenario (.yaml, .json), a module (.mjs, .js, .ts) or a name: echo, coder, summariser …',
    )
    .option('--window <tokens>', 'one context window for every model', tokenCount)
    .option('--seed <text>', 'the same seed gives the same ids and signatures')
    .option('--cached-clearing', 'also the undocumented cache_edits, which no provider promises')
    .option('--host <address>', 'address to listen on; 127.0.0.1 without it')
    .option('--allow-remote', 'with --host: let others on the network reach it, who need no key')
    .option('--json', 'print one line { "url": … } once it listens, and nothing else')
    .action(async (choices: SimulateChoices) => {
      const { simulate } = await import('./commands/simulate.ts')
      outcome.code = await simulate(choices, terminal)
    })
}

function portNumber(text: string): number {
  const port = Number(text)
  if (!/^\d+$/.test(text) || port > 65_535) throw new InvalidArgumentError('Expected a port from 0 to 65535.')
  return port
}

function tokenCount(text: string): number {
  if (!/^[1-9]\d*$/.test(text)) throw new InvalidArgumentError('Expected a whole number of tokens.')
  return Number(text)
}

function addStart(program: Command, terminal: Terminal): void {
  program
    .command('start')
    .description('show a sample session: as its log, as the view a model is shown, and as a request')
    .option('--json', 'print one JSON value: { session, view, request, findings }')
    .action((options: { readonly json?: boolean }) => start(options, terminal))
}

function addTour(program: Command, terminal: Terminal, outcome: Outcome): void {
  program
    .command('tour')
    .description('see it work: a sample session cleared, compacted, undone and billed on a simulated model')
    .option('--json', 'print one JSON value: { steps }')
    .action(async (options: { readonly json?: boolean }) => {
      const { tour } = await import('./commands/tour.ts')
      outcome.code = await tour(options, terminal)
    })
}
