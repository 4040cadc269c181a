/** Where Tidemark keeps what it keeps: `TIDEMARK_HOME`, or a folder of its own in the user's data directory. */
import { homedir } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import { TidemarkError } from '@tidemark/core'
import { show } from './show.ts'

export interface HomeVariables {
  readonly TIDEMARK_HOME?: string | undefined
  readonly XDG_DATA_HOME?: string | undefined
}

/** An empty variable counts as unset; a relative one is refused, since its meaning would change with the folder. */
export function tidemarkHome(variables: HomeVariables = process.env, userHome: string = homedir()): string {
  const own = fromVariable('TIDEMARK_HOME', variables.TIDEMARK_HOME)
  if (own !== null) return own
  const shared = fromVariable('XDG_DATA_HOME', variables.XDG_DATA_HOME)
  return join(shared ?? join(userHome, '.local', 'share'), 'tidemark')
}

/** The home that a caller gave, or `tidemarkHome()` where it gave none. */
export function homeOr(given: string | undefined): string {
  if (given === undefined) return tidemarkHome()
  return absolute('The home', given, 'Give one, or leave it out')
}

function fromVariable(name: string, value: string | undefined): string | null {
  if (value === undefined || value === '') return null
  return absolute(name, value, 'Set it to one, or unset it')
}

function absolute(name: string, value: unknown, advice: string): string {
  if (typeof value === 'string' && isAbsolute(value)) return resolve(value)
  throw new TidemarkError(
    'bad-home',
    `${name} is ${show(value)}: it has to be an absolute path. ${advice}.`,
    { details: { name, value } },
  )
}
