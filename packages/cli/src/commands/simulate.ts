/** The simulator as a command: serves until it is interrupted, with a line for each request. */
import { lineOf, loadScript, type Script, serveSimulator } from '@tidemark/simulator'
import type { Terminal } from '../terminal.ts'

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

const FAILED = 1
const DONE = 0
/** A moment before the first byte: requests that are sent together then overlap, as they do at a provider. */
const FIRST_BYTE_MS = 5

export async function simulate(choices: SimulateChoices, terminal: Terminal): Promise<number> {
  const { port, host, allowRemote, window, seed, cachedClearing } = choices
  const loaded = await loadScript(choices.script ?? 'echo')
  if (!loaded.ok) {
    terminal.warn(`tidemark: ${loaded.message}\n`)
    return FAILED
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
  return DONE
}

function greeting(url: string, choices: SimulateChoices): string {
  return [
    `The Messages API is simulated at ${url} (model: ${choices.script ?? 'echo'}). Ctrl-C ends it.`,
    `  ANTHROPIC_BASE_URL=${url} ANTHROPIC_API_KEY=any your-agent`,
    `  ${url}/_simulator/requests   each request, what its cache did and what it cost`,
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
