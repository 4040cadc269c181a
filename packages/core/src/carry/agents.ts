/** Agents in the background: each that runs, or has ended and was not collected, so that none is started twice. */
import type { Carrier } from './carrier.ts'
import { type Given, simpleCarrier } from './simple-carrier.ts'

export interface BackgroundAgent {
  readonly id: string
  /** What it was started for. */
  readonly purpose: string
  readonly status: 'running' | 'finished' | 'failed' | 'stopped'
  /** Its result has reached the conversation. */
  readonly isCollected?: boolean
  /** Where its output lies, or how to get it. */
  readonly output?: string
}

export function agentsCarrier(read: () => Given<readonly BackgroundAgent[]>): Carrier {
  return simpleCarrier({
    name: 'agents',
    kind: 'agents',
    // The host tells the end of an agent itself, where the model is to act on it.
    tellsChanges: false,
    read: async () =>
      (await read()).filter(isOpen).map((agent) => ({ ...offer(agent), ...sheddable(agent) })),
  })
}

function isOpen({ status, isCollected = false }: BackgroundAgent): boolean {
  return status === 'running' || !isCollected
}

function offer({ id, purpose, status, output }: BackgroundAgent) {
  const content = [
    `${id} (${status}): ${purpose}`,
    ...(output === undefined ? [] : [`Output: ${output}`]),
  ].join('\n')
  return { id, attachment: { type: 'task_status', taskId: id, status, content }, source: 'host' }
}

/** One that runs is never left out. */
function sheddable({ status }: BackgroundAgent): { readonly sheddable?: 'agents' } {
  return status === 'running' ? {} : { sheddable: 'agents' }
}
