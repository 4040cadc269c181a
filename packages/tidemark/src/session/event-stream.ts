/**
 * Events of an act that goes on by itself: they are kept until somebody reads them, so that whoever watches may wait
 * for something else of the same session. Who stops watching calls the act off.
 */

export interface EventStream<Event, End> extends AsyncIterable<Event> {
  /** How it ended. Rejects only where something broke: a disk, a listener of yours. */
  readonly outcome: Promise<End>
}

export interface StreamWork<Event, End> {
  readonly events: AsyncGenerator<Event, End>
  readonly onEvent: (event: Event) => void
  readonly callOff: () => void
}

export function streamOf<Event, End>(work: StreamWork<Event, End>): EventStream<Event, End> {
  const kept: Event[] = []
  let more = Promise.withResolvers<void>()
  let isOver = false
  const wake = (): void => {
    more.resolve()
    more = Promise.withResolvers()
  }
  const outcome = drain(work, (event) => {
    kept.push(event)
    wake()
  }).finally(() => {
    isOver = true
    wake()
  })
  outcome.catch(() => {})
  async function* read(): AsyncGenerator<Event, void> {
    try {
      for (;;) {
        const event = kept.shift()
        if (event !== undefined) yield event
        else if (isOver) break
        else await more.promise
      }
      await outcome
    } finally {
      if (!isOver) work.callOff()
      await outcome.catch(() => {})
    }
  }
  return { outcome, [Symbol.asyncIterator]: read }
}

/** Runs a generator to its end, telling every event. */
export async function drain<Event, End>(
  { events, onEvent }: Pick<StreamWork<Event, End>, 'events' | 'onEvent'>,
  also: (event: Event) => void = () => {},
): Promise<End> {
  for (;;) {
    const step = await events.next()
    if (step.done === true) return step.value
    onEvent(step.value)
    also(step.value)
  }
}
