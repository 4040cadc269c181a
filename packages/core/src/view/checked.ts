/** Validation that keeps pace with flattening: what is frozen is checked once, only the tail anew. */
import { List } from '../conversation/list.ts'
import type { Profile } from '../policy/profile.ts'
import type { FlatMessage } from './draft.ts'
import type { Flat } from './flatten.ts'
import type { Fields, Finding } from './validate/finding.ts'
import { checkMessage, finishMessages, type MessageCheck, startMessageCheck } from './validate/messages.ts'
import { checkRequest } from './validate/validate.ts'

/** The check of the frozen messages, to go on from. */
export interface Checked {
  readonly frozen: List<FlatMessage>
  readonly state: MessageCheck
}

export function startCheck(profile: Profile): Checked {
  return { frozen: List.of(), state: startMessageCheck(profile) }
}

/** The check of `flat`, given that of an earlier state of it. */
export function advanceCheck(checked: Checked, flat: Pick<Flat, 'frozen'>): Checked {
  const start = flat.frozen.extends(checked.frozen) ? checked : startCheck(checked.state.profile)
  let { state } = start
  for (let index = start.frozen.length; index < flat.frozen.length; index += 1) {
    state = checkMessage(state, flat.frozen.at(index)?.message)
  }
  return { frozen: flat.frozen, state }
}

/** What `validate` would find in `request` with the messages of `flat`. */
export function findingsOf(checked: Checked, flat: Flat, request: Fields): readonly Finding[] {
  let { state } = checked
  for (const { message } of flat.tail) state = checkMessage(state, message)
  return [...checkRequest(request, state.profile), ...finishMessages(state, request)]
}
