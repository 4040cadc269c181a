/** Those who listen to a session. One that throws is told to the others and stops nobody. */
import { checkListening } from './event-names.ts'
import type { EventOf, SessionEvent, SessionEventType } from './session-event.ts'

export type Listener = (event: SessionEvent) => void

export interface Listeners {
  readonly emit: Listener
  /** Tells at once those who listen already, and later the first who asks for the type by `on`. */
  readonly keep: Listener
  /** Gives back what ends it. */
  on<Type extends SessionEventType>(type: Type | '*', listener: (event: EventOf<Type>) => void): () => void
}

export function createListeners(always?: Listener): Listeners {
  const all = new Set<Listener>(always === undefined ? [] : [always])
  const emit = (event: SessionEvent): void => {
    for (const listener of [...all]) told(listener, event)
  }
  const told = (listener: Listener, event: SessionEvent): void => {
    try {
      listener(event)
    } catch (thrown) {
      if (event.type !== 'listener-failed') emit(failed(event, thrown))
    }
  }
  let kept: readonly SessionEvent[] = []
  return {
    emit,
    keep(event) {
      kept = [...kept, event]
      emit(event)
    },
    on(type, listener) {
      checkListening(type, listener)
      const own: Listener = (event) => {
        if (type === '*' || event.type === type) listener(event as Parameters<typeof listener>[0])
      }
      all.add(own)
      const asked = kept.filter((event) => type === '*' || event.type === type)
      kept = kept.filter((event) => !asked.includes(event))
      for (const event of asked) told(own, event)
      return () => all.delete(own)
    },
  }
}

function failed({ type }: SessionEvent, thrown: unknown): SessionEvent {
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  return { type: 'listener-failed', about: type, message }
}
