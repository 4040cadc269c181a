/**
 * The command line: parses arguments, runs a command and returns an exit code (see `EXIT_CODES`). With `--json` a
 * command prints exactly one JSON value on standard output.
 */

import {
  createColors,
  createProcessTerminal,
  EXIT_CODES,
  isColorEnabled,
  type Terminal,
} from '@tidemark/terminal/terminal'
import { Command, CommanderError } from 'commander'
import manifest from '../../package.json' with { type: 'json' }
import { addCommands } from './define-commands.ts'

/** Runs one command, or prints the help if there are no arguments. Returns the exit code; errors are printed, not thrown. */
export async function main(args: readonly string[], terminal: Terminal): Promise<number> {
  const program = createProgram(terminal)
  const outcome = { code: EXIT_CODES.done as number }
  addCommands(program, terminal, outcome)
  addHelpPointers(program, program.name())
  try {
    await program.parseAsync(args.length === 0 ? ['--help'] : [...normalizeArguments(program, args)], {
      from: 'user',
    })
    return outcome.code
  } catch (error) {
    if (terminal.interrupted?.aborted === true) return EXIT_CODES.interrupted
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_CODES.done : EXIT_CODES.wrongUse
    const { printThrownError } = await import('@tidemark/terminal/render/print-errors')
    return printThrownError(error, terminal)
  }
}

function createProgram(terminal: Terminal): Command {
  const colors = createColors(terminal)
  return (
    new Command('tidemark')
      .description('A context engine for long-running LLM agents.')
      .version(manifest.version, '-V, --version', 'print the version')
      .helpOption('-h, --help', 'print this help')
      .helpCommand('help [command]', 'print the help of a command')
      // An option after a subcommand belongs to that subcommand, even if the command above it has an option with the same name.
      .enablePositionalOptions()
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
        getOutHasColors: () => isColorEnabled(terminal),
        getErrHasColors: () => isColorEnabled(terminal),
      })
  )
}

/** Prints each usage error as one sentence, followed by a reference to the `--help` of the command. */
function addHelpPointers(command: Command, path: string): void {
  command.configureOutput({
    outputError: (text, write) => {
      const message = toSingleLine(text.replace(/^error: /, ''))
      const end = /[.?)]$/.test(message) ? '' : '.'
      write(`tidemark: ${message}${end} See ${path} --help.\n`)
    },
  })
  for (const one of command.commands) addHelpPointers(one, `${path} ${one.name()}`)
}

/**
 * Prepares the arguments for Commander. If the command is unknown, all arguments after its name are dropped, because
 * Commander would print the general help for `unknown --help` instead of an error.
 */
function normalizeArguments(program: Command, args: readonly string[]): readonly string[] {
  const [name, part] = args[0] === 'help' ? args.slice(1) : args
  if (name === undefined || !isCommandName(name)) return args
  const command = findCommand(program, name)
  if (command === undefined) return [name]
  const hasCommands = command.commands.length > 0
  if (part !== undefined && isCommandName(part) && hasCommands && findCommand(command, part) === undefined) {
    const names = command.commands.map((one) => one.name()).filter((one) => one !== 'help')
    const last = names.pop()
    command.error(`unknown command '${command.name()} ${part}': expected ${names.join(', ')} or ${last}`)
  }
  return args
}

function isCommandName(argument: string): boolean {
  return !argument.startsWith('-') && argument !== 'help'
}

function findCommand(command: Command, name: string): Command | undefined {
  return command.commands.find((one) => one.name() === name || one.aliases().includes(name))
}

function toSingleLine(text: string): string {
  return text.trim().replace(/\s*\n\s*/g, ' ')
}

/** Runs the command line as a process. Called by `bin/tidemark.mjs`. */
export async function run(): Promise<void> {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // The chat screen has its own listener, because it must first close its session and commands.
    if (process.stdout.listenerCount('error') > 1) return
    const { code, line } = describeOutputError(error)
    process.stderr.write(line)
    process.exit(code)
  })
  const interruption = new AbortController()
  process.once('SIGINT', () => {
    interruption.abort()
    // A second Ctrl-C ends the process at once.
    process.once('SIGINT', () => process.exit(EXIT_CODES.interrupted))
  })
  process.exitCode = await main(process.argv.slice(2), createProcessTerminal(process, interruption.signal))
}

/**
 * Returns the exit code and the message after writing to standard output failed. A closed pipe (`tidemark sample |
 * head`) is no failure: no message, and the code is undefined, so the command's own stays. A full disk is one.
 */
export function describeOutputError(error: NodeJS.ErrnoException): {
  readonly code: number | undefined
  readonly line: string
} {
  if (error.code === 'EPIPE') return { code: undefined, line: '' }
  return { code: EXIT_CODES.failed, line: `tidemark: the output could not be written: ${error.message}\n` }
}
