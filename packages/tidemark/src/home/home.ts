/** Where Tidemark keeps what it keeps: `TIDEMARK_HOME`, or a folder of its own in the user's data directory. */
import { homedir } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import { TidemarkError } from '@tidemark/core'

export interface HomeVariables {
  readonly TIDEMARK_HOME?: string | undefined
  readonly XDG_DATA_HOME?: string | undefined
}

/** An empty variable counts as unset; a relative one is refused, since its meaning would change with the folder. */
export function tidemarkHome(variables: HomeVariables = process.env, userHome: string = homedir()): string {
  const own = absolute('TIDEMARK_HOME', variables.TIDEMARK_HOME)
  if (own !== null) return own
  const shared = absolute('XDG_DATA_HOME', variables.XDG_DATA_HOME)
  return join(shared ?? join(userHome, '.local', 'share'), 'tidemark')
}

function absolute(name: string, value: string | undefined): string | null {
  if (value === undefined || value === '') return null
  if (isAbsolute(value)) return resolve(value)
  throw new TidemarkError(
    'bad-home',
    `${name} is ${JSON.stringify(value)}: it has to be an absolute path. Set it to one, or unset it.`,
    { details: { name, value } },
  )
}
