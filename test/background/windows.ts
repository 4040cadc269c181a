/** A session that is driven through several context windows while its user types, with what must hold of it. */
import { user } from 'tidemark'
import { type Figures, type LongSession, type LongSessionOptions, openLongSession } from './long-session.ts'

export interface WindowsResult extends Figures {
  /** Texts that the user typed while a summary was being written or swapped in, in order. */
  readonly typed: readonly string[]
  /** The typed texts as the log has them, in order. */
  readonly logged: readonly string[]
  /** Typed texts that neither the context nor the summary in it has, at the end. */
  readonly missing: readonly string[]
  readonly long: LongSession
}

/** Milliseconds after the start of a summary at which the user types something. */
const TYPES_AT = [0, 1, 0.4, 0.99, 1.001, 1.2]

export async function driveThroughWindows(
  windows: number,
  options: LongSessionOptions & { readonly summaryMs: number },
): Promise<WindowsResult> {
  const typed: string[] = []
  const typing: Promise<unknown>[] = []
  const long = await openLongSession({
    ...options,
    onSummaryAsked: () => {
      for (const share of TYPES_AT)
        typing.push(
          long.clock.sleep(share * options.summaryMs).then(() => {
            const text = `Note ${typed.length + 1}: keep the tests green.`
            typed.push(text)
            return long.session.append(user(text))
          }),
        )
    },
  })
  while (long.readFigures().compactions < windows) await long.work()
  await long.pass(Promise.all(typing))
  await long.work()
  const logged = [...(long.store.get('long')?.lines ?? [])].flatMap((line) => {
    const { type, message } = JSON.parse(line)
    return type === 'user' && typeof message?.content === 'string' && typed.includes(message.content)
      ? [message.content]
      : []
  })
  const shown = JSON.stringify(long.session.messages())
  return {
    ...long.readFigures(),
    typed,
    logged,
    missing: typed.filter((text) => !shown.includes(text)),
    long,
  }
}
