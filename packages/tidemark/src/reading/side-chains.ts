/** Lines of other conversations in a session's log: each agent's gathered by itself, as a conversation of its own. */
import type { SessionRecord } from '@tidemark/core'
import type { ReadRecord } from '@tidemark/wire'

export interface SideChain {
  /** The agent, where the lines name one; else the uuid of the first. */
  readonly agent: string
  readonly records: readonly ReadRecord[]
}

export interface SideChains {
  /** False where the record is one of the main conversation. */
  take(read: ReadRecord): boolean
  readonly list: readonly SideChain[]
}

export function createSideChains(): SideChains {
  const chains = new Map<string, ReadRecord[]>()
  /** uuid → agent, for lines that name none. */
  const agents = new Map<string, string>()
  return {
    take({ record, line }) {
      if (record.isSidechain !== true) return false
      const agent = agentOf(record, agents)
      if (typeof record.uuid === 'string') agents.set(record.uuid, agent)
      const own = { record: { ...record, isSidechain: false }, line }
      const chain = chains.get(agent)
      if (chain === undefined) chains.set(agent, [own])
      else chain.push(own)
      return true
    },
    get list() {
      return [...chains].map(([agent, records]) => ({ agent, records }))
    },
  }
}

/** A line without agent is of the conversation of its parent, and without that begins one. */
function agentOf(record: SessionRecord, agents: ReadonlyMap<string, string>): string {
  const { agentId } = record as { readonly agentId?: unknown }
  if (typeof agentId === 'string' && agentId !== '') return agentId
  const parent = record.parentUuid
  return (typeof parent === 'string' ? agents.get(parent) : undefined) ?? record.uuid ?? 'unknown'
}
