/** Which command is asked for, before any help is given: a mistyped name must not pass for a question about all of them. */
import type { Command } from 'commander'

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
