/**
 * The command line: from arguments to an exit code. 0 done, 1 failed, 2 wrong use. With `--json` a command
 * prints one JSON value on standard output and nothing else there.
 */

import { TidemarkError } from '@tidemark/core'
import { Command, CommanderError, InvalidArgumentError } from 'commander'
import manifest from '../package.json' with { type: 'json' }
import { addSessionCommands, type Outcome, start } from './commands/define-commands.ts'
import type { SimulateChoices } from './commands/simulate.ts'
import { colorsFor, processTerminal, type Terminal, wantsColors } from './terminal.ts'

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

// The command as a process: what the committed bin calls.

export async function run(): Promise<void> {
  process.stdout.on('error', leave)
  const interruption = new AbortController()
  process.once('SIGINT', () => {
    interruption.abort()
    // Asked twice, it ends whatever it is doing.
    process.once('SIGINT', () => process.exit(INTERRUPTED))
  })
  process.exitCode = await main(process.argv.slice(2), processTerminal(process, interruption.signal))
}

function leave(error: NodeJS.ErrnoException): void {
  const { code, line } = outputFailure(error)
  process.stderr.write(line)
  process.exit(code)
}

/** Whoever read our output has seen enough (`tidemark start | head`): that is no fault. A full disk is one. */
export function outputFailure(error: NodeJS.ErrnoException): {
  readonly code: number | undefined
  readonly line: string
} {
  if (error.code === 'EPIPE') return { code: undefined, line: '' }
  return { code: 1, line: `tidemark: the output could not be written: ${error.message}\n` }
}

// Which command is asked for, before any help is given: a mistyped name must not pass for a question about all of them.

/** The arguments as Commander should see them; of an unknown command no more than its name, so that it says so. */
export function askedOf(program: Command, args: readonly string[]): readonly string[] {
  const words = args[0] === 'help' ? args.slice(1) : args
  const [name, part] = words
  if (name === undefined || !isName(name)) return args
  const command = namedIn(program, name)
  if (command === undefined) return [name]
  if (
    part !== undefined &&
    isName(part) &&
    command.commands.length > 0 &&
    namedIn(command, part) === undefined
  )
    refuse(command, part)
  return args
}

function isName(word: string): boolean {
  return !word.startsWith('-') && word !== 'help'
}

function namedIn(command: Command, name: string): Command | undefined {
  return command.commands.find((one) => one.name() === name || one.aliases().includes(name))
}

function refuse(command: Command, part: string): never {
  const names = command.commands.map((one) => one.name()).filter((name) => name !== 'help')
  const last = names.pop()
  command.error(`unknown command '${command.name()} ${part}': it is ${names.join(', ')} or ${last}`)
}

// What a person is told when a command fails: one line, and the stack only for those who ask for it.

export function tellFailure(error: unknown, terminal: Terminal): void {
  if (terminal.env.TIDEMARK_DEBUG === '1' && error instanceof Error) terminal.warn(`${error.stack}\n`)
  else terminal.warn(`tidemark: ${lineOf(error)}\n`)
}

function lineOf(error: unknown): string {
  if (error instanceof TidemarkError) return inOneLine(error.message)
  const message = inOneLine(error instanceof Error ? error.message : String(error))
  return `${message} (a fault of tidemark; TIDEMARK_DEBUG=1 shows where)`
}

export function inOneLine(text: string): string {
  return text.trim().replace(/\s*\n\s*/g, ' ')
}
