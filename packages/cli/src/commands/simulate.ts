/** `tidemark simulate`: serves the simulated Messages API until interrupted, and prints a line for each request. */
import { formatRequestLine, loadScenario, type Script, serve } from '@tidemark/simulator'
import type { Terminal } from '../terminal.ts'
import { EXIT_CODES } from './exit-codes.ts'

export interface SimulateCommandOptions {
  readonly port?: number
  readonly host?: string
  readonly allowRemote?: boolean
  readonly script?: string
  readonly window?: number
  readonly seed?: string
  readonly cachedClearing?: boolean
  readonly json?: boolean
}

/** Delay before the first byte of a response, so that requests sent together overlap as with a real provider. */
const FIRST_BYTE_MS = 5

export async function runSimulateCommand(
  choices: SimulateCommandOptions,
  terminal: Terminal,
): Promise<number> {
  const { port, host, allowRemote, window, seed, cachedClearing } = choices
  const loaded = await loadScenario(choices.script ?? 'echo')
  if (!loaded.ok) {
    terminal.warn(`tidemark: ${loaded.message}\n`)
    return EXIT_CODES.failed
  }
  const served = await serve({
    script: loaded.script satisfies Script,
    firstByteMs: FIRST_BYTE_MS,
    ...omitUndefined({ port, host, allowRemote, window, seed, cachedClearing }),
    onRequest: (record) => {
      if (choices.json !== true) terminal.write(`${formatRequestLine(record)}\n`)
    },
  })
  terminal.write(
    choices.json === true ? `${JSON.stringify({ url: served.url })}\n` : formatGreeting(served.url, choices),
  )
  await waitForInterruption(terminal)
  await served.close()
  return EXIT_CODES.done
}

function formatGreeting(url: string, choices: SimulateCommandOptions): string {
  return [
    `The Messages API is simulated at ${url} (script: ${choices.script ?? 'echo'}). Press Ctrl-C to stop.`,
    `  ANTHROPIC_BASE_URL=${url} ANTHROPIC_API_KEY=any your-agent`,
    `  ${url}/_simulator/requests   every request, with its cache use and cost`,
    '',
    '',
  ].join('\n')
}

function waitForInterruption({ interrupted }: Terminal): Promise<void> {
  return new Promise((resolve) => {
    if (interrupted?.aborted === true) resolve()
    interrupted?.addEventListener('abort', () => resolve(), { once: true })
  })
}

function omitUndefined<T extends object>(choices: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const present = Object.entries(choices).filter(([, value]) => value !== undefined)
  return Object.fromEntries(present) as { [K in keyof T]?: Exclude<T[K], undefined> }
}
