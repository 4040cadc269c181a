/** A gateway as a process of its own, as `tidemark gateway` starts it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const COMMAND = fileURLToPath(new URL('../../packages/cli/bin/tidemark.mjs', import.meta.url))

export interface GatewayProcess {
  readonly url: string
  readonly process: ChildProcess
  /** Lines of standard error. */
  readonly errors: string[]
  kill(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>
}

export async function startGatewayProcess(options: {
  readonly database: string
  readonly upstream: string
  readonly port?: number
  /** Arguments of `node` that start the command. Default: the command as it is installed. */
  readonly command?: readonly string[]
  readonly args?: readonly string[]
}): Promise<GatewayProcess> {
  const { database, upstream, port = 0, command = [COMMAND], args = [] } = options
  const child = spawn(
    process.execPath,
    [
      ...command,
      'gateway',
      '--json',
      ...args,
      ...[
        '--database',
        database,
        '--upstream',
        upstream,
        '--upstream-openai',
        upstream,
        '--port',
        String(port),
      ],
    ],
    {
      env: {
        PATH: process.env.PATH,
        HOME: '/nonexistent',
        ANTHROPIC_API_KEY: 'sk-own',
        OPENAI_API_KEY: 'sk-own',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  const errors: string[] = []
  child.stderr.on('data', (data: Buffer) => errors.push(String(data)))
  const ended = once(child, 'exit')
  const line = await Promise.race([
    once(child.stdout, 'data').then(([data]) => String(data)),
    ended.then(() => {
      throw new Error(`The gateway ended: ${errors.join('')}`)
    }),
  ])
  return {
    url: (JSON.parse(line) as { url: string }).url,
    process: child,
    errors,
    async kill(signal) {
      child.kill(signal)
      await ended
    },
  }
}
