/** A gateway as a process of its own, as `tidemark gateway` starts it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { TIDEMARK_COMMAND } from '../../packages/cli/test/command-line.ts'

export interface GatewayProcess {
  readonly url: string
  readonly process: ChildProcess
  /** Lines of standard error. */
  readonly errors: string[]
  kill(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>
}

export interface GatewayProcessOptions {
  readonly database: string
  readonly upstream: string
  /** More arguments of `tidemark gateway`. */
  readonly args?: readonly string[]
  /** Arguments of `node` that name the command. Default: the present sources. */
  readonly command?: readonly string[]
}

export async function startGatewayProcess(options: GatewayProcessOptions): Promise<GatewayProcess> {
  const { database, upstream, args = [], command = TIDEMARK_COMMAND } = options
  const addresses = ['--database', database, '--upstream', upstream, '--upstream-openai', upstream]
  const child = spawn(
    process.execPath,
    [...command, 'gateway', '--json', '--port', '0', ...addresses, ...args],
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
