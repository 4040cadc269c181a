/** The next request of a session: the prefix its newest epoch fixed, and the messages of its view. */
import {
  type Epoch,
  flatten,
  isKnown,
  messagesOf,
  type Payload,
  type Session,
  type View,
} from '@tidemark/core'

export function requestOf(session: Session, view: View): Payload {
  const epoch = newestEpoch(session)
  const messages = messagesOf(flatten(view))
  if (epoch === null) return { model: 'unknown', messages }
  const { sections, tools, model, parameters } = epoch
  const system = sections.map(({ text }) => ({ type: 'text', text }))
  return { model, ...parameters, system, tools, messages }
}

function newestEpoch(session: Session): Epoch | null {
  for (const record of session.records.toArray().reverse()) {
    if (isKnown(record) && record.type === 'system' && record.epoch !== undefined) return record.epoch
  }
  return null
}
