/** `tidemark simulate` as a process of its own, for tests of the agent: script, faults, totals, request records. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { RequestRecord } from '@tidemark/simulator'

const { TIDEMARK_TEST_COMMAND } = process.env

/** Arguments of `node` before those of the command, which runs as a build of the present sources where one can be made. */
export const TIDEMARK_COMMAND: readonly string[] =
  TIDEMARK_TEST_COMMAND === undefined
    ? [
        '--conditions=tidemark-source',
        fileURLToPath(new URL('../../cli/test/run-sources.ts', import.meta.url)),
      ]
    : [TIDEMARK_TEST_COMMAND]

export interface SimulateProcess {
  readonly url: string
  readTotals(): Promise<SimulatorTotals>
  /** The records of all requests, oldest first. */
  readRequests(): Promise<readonly RequestRecord[]>
  /** Faults as `POST /_simulator/faults` takes them. */
  scheduleFaults(faults: readonly object[]): Promise<void>
  close(): Promise<void>
}

export interface SimulatorTotals {
  readonly failed: number
  readonly usage: Readonly<Record<'input' | 'cacheRead' | 'write5m' | 'write1h' | 'output', number>>
  readonly cost: { readonly total: number; readonly saved: number }
  readonly unpriced: number
}

export async function startSimulateProcess(options: {
  readonly script: string
  readonly window?: number
}): Promise<SimulateProcess> {
  const { script, window } = options
  const limits = window === undefined ? [] : ['--window', String(window)]
  const child = spawn(
    process.execPath,
    [...TIDEMARK_COMMAND, 'simulate', '--script', script, '--keep-requests', '20000', '--json', ...limits],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const lines = createInterface({ input: child.stdout })
  const [line] = (await once(lines, 'line')) as [string]
  const { url } = JSON.parse(line) as { readonly url: string }
  const control = `${url}/_simulator`
  return {
    url,
    async readTotals() {
      const state = (await (await fetch(control)).json()) as { readonly totals: SimulatorTotals }
      return state.totals
    },
    async readRequests() {
      const state = (await (await fetch(`${control}/requests`)).json()) as {
        readonly requests: readonly RequestRecord[]
      }
      return state.requests
    },
    async scheduleFaults(faults) {
      const headers = { 'content-type': 'application/json' }
      const response = await fetch(`${control}/faults`, {
        method: 'POST',
        headers,
        body: JSON.stringify(faults),
      })
      if (!response.ok) throw new Error(await response.text())
    },
    async close() {
      const ended = once(child, 'exit')
      child.kill('SIGINT')
      await ended
    },
  }
}
