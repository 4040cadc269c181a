/**
 * Lists that are announced piece by piece: late tools, agents that can be called, instructions of connected servers.
 * Only what the view does not show as it is now is said: new, changed, gone.
 */
import type { Carrier, CarryContext } from './carrier.ts'
import { type Given, simpleCarrier } from './simple-carrier.ts'

export interface Announced {
  readonly name: string
  readonly text: string
}

export interface DeltaCarrier {
  readonly name: string
  readonly type: 'tool_delta' | 'agent_delta' | 'mcp_instructions'
  /** All there is now, in the host's order. */
  readonly read: () => Given<readonly Announced[]>
}

export function deltaCarrier({ name, type, read }: DeltaCarrier): Carrier {
  return simpleCarrier({
    name,
    kind: 'deltas',
    isWhole: false,
    read: async (context) => {
      const items = difference(await read(), told(name, context))
      if (items.length === 0) return []
      const attachment = { type, items: Object.fromEntries(items) }
      return [{ id: 'delta', attachment, source: 'host', sheddable: 'deltas' as const, isDelta: true }]
    },
  })
}

function told(name: string, { shown }: CarryContext): ReadonlyMap<string, string | null> {
  return shown.items.get(name) ?? new Map()
}

function difference(
  now: readonly Announced[],
  before: ReadonlyMap<string, string | null>,
): readonly (readonly [string, string | null])[] {
  const names = new Set(now.map(({ name }) => name))
  const fresh = now.filter(({ name, text }) => before.get(name) !== text)
  const gone = [...before].filter(([name, text]) => text !== null && !names.has(name))
  return [
    ...fresh.map(({ name, text }) => [name, text] as const),
    ...gone.map(([name]) => [name, null] as const),
  ]
}
