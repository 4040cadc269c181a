/**
 * The register of tool calls and results, kept up entry by entry: a turn costs what it added. It begins anew
 * where the view was rewritten.
 */
import type { Entry } from '../view/entry.ts'
import { entryEndsTurn, isShown } from '../view/parts.ts'
import type { View } from '../view/view.ts'
import { registerAct } from './register-acts.ts'
import { registerCalls } from './register-calls.ts'
import { registerAttachment, registerResults } from './register-results.ts'
import { emptyRegister, type Register } from './register-state.ts'

/** The register of `view`, given that of an earlier state of it. */
export function advanceRegister(register: Register, { entries }: Pick<View, 'entries'>): Register {
  let next = entries.extends(register.entries) ? register : emptyRegister(register.rules)
  for (let place = next.entries.length; place < entries.length; place += 1) {
    const entry = entries.at(place)
    if (entry !== undefined) next = registered(next, entry, place)
  }
  return { ...next, entries }
}

function registered(register: Register, entry: Entry, place: number): Register {
  const next = taken(register, entry, place)
  return entryEndsTurn(entry) ? { ...next, promptAt: place } : next
}

function taken(register: Register, entry: Entry, place: number): Register {
  const { record } = entry
  if (record.type === 'system') return registerAct(register, record)
  if (!isShown(entry)) return register
  if (record.type === 'assistant') return registerCalls(register, { entry, record, place })
  if (record.type === 'user') return registerResults(register, { entry, record, place })
  return record.type === 'attachment' ? registerAttachment(register, { entry, record, place }) : register
}
