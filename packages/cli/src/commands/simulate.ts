/** `tidemark simulate`: serves the simulated Messages API until interrupted, and prints a line for each request. */
import { lineOf, loadScript, type Script, serveSimulator } from '@tidemark/simulator'
import type { Terminal } from '../terminal.ts'
import { EXIT } from './exit-codes.ts'

export interface SimulateChoices {
  readonly port?: number
  readonly host?: string
  readonly allowRemote?: boolean
  readonly script?: string
  readonly window?: number
  readonly seed?: string
  readonly cachedClearing?: boolean
  readonly json?: boolean
}

/** Delay before the first byte: requests sent together then overlap, as they do at a provider. */
const FIRST_BYTE_MS = 5

export async function simulate(choices: SimulateChoices, terminal: Terminal): Promise<number> {
  const { port, host, allowRemote, window, seed, cachedClearing } = choices
  const loaded = await loadScript(choices.script ?? 'echo')
  if (!loaded.ok) {
    terminal.warn(`tidemark: ${loaded.message}\n`)
    return EXIT.failed
  }
  const served = await serveSimulator({
    script: loaded.script satisfies Script,
    firstByteMs: FIRST_BYTE_MS,
    ...withoutAbsent({ port, host, allowRemote, window, seed, cachedClearing }),
    onRequest: (record) => {
      if (choices.json !== true) terminal.write(`${lineOf(record)}\n`)
    },
  })
  terminal.write(
    choices.json === true ? `${JSON.stringify({ url: served.url })}\n` : greeting(served.url, choices),
  )
  await interruption(terminal)
  await served.close()
  return EXIT.done
}

function greeting(url: string, choices: SimulateChoices): string {
  return [
    `The Messages API is simulated at ${url} (script: ${choices.script ?? 'echo'}). Press Ctrl-C to stop.`,
    `  ANTHROPIC_BASE_URL=${url} ANTHROPIC_API_KEY=any your-agent`,
    `  ${url}/_simulator/requests   every request, with its cache use and cost`,
    '',
    '',
  ].join('\n')
}

function interruption({ interrupted }: Terminal): Promise<void> {
  return new Promise((resolve) => {
    if (interrupted?.aborted === true) resolve()
    interrupted?.addEventListener('abort', () => resolve(), { once: true })
  })
}

function withoutAbsent<T extends object>(choices: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const present = Object.entries(choices).filter(([, value]) => value !== undefined)
  return Object.fromEntries(present) as { [K in keyof T]?: Exclude<T[K], undefined> }
}
