/** How a compaction came about, step by step: what was asked for a summary, what was brought back, what was let go. */
import type { ChainStep, CompactionDraft, NotCarried, TurnEvent } from '@tidemark/core'

export interface CompactionStep {
  readonly tier: 'compact' | 'summary' | 'carry'
  /** The form of the compaction; the rung that was asked; the key of what was brought back. */
  readonly kind: string
  readonly outcome: ChainStep['outcome'] | 'carried' | 'shed'
  readonly chosen: boolean
  readonly why: string
  /** Tokens of what was brought back. */
  readonly tokens?: number
  /** Of the compaction: tokens, dollars, and calls until it has paid for itself. */
  readonly before?: number
  readonly after?: number
  readonly price?: number | null
  readonly breakEven?: number | null
}

export interface TraceNotes {
  take(event: TurnEvent): void
  steps(draft: CompactionDraft): readonly CompactionStep[]
}

export function createTraceNotes(): TraceNotes {
  let shed: readonly string[] = []
  let skipped: readonly NotCarried[] = []
  const failed: CompactionStep[] = []
  return {
    take(event) {
      if (event.type === 'restored') [shed, skipped] = [event.shed, event.skipped]
      if (event.type === 'restore-failed') failed.push(step('failed', event.carrier, event.why))
    },
    steps({ summary, front, carried }) {
      const brought = [...front, ...carried]
      return [
        ...summary.steps.map(summaryStep),
        ...brought.map(({ key, source, tokens }) => ({ ...step('carried', key, `from ${source}`), tokens })),
        ...shed.map((key) => step('shed', key, 'there was no room for it')),
        ...skipped.map(({ key, why }) => step('skipped', key, why)),
        ...failed,
      ]
    },
  }
}

function summaryStep({ rung, kind, outcome, reason, message }: ChainStep): CompactionStep {
  const why = message === '' ? reason : message
  return { tier: 'summary', kind: `${rung} ${kind}`, outcome, chosen: outcome === 'accepted', why }
}

function step(outcome: CompactionStep['outcome'], kind: string, why: string): CompactionStep {
  return { tier: 'carry', kind, outcome, chosen: outcome === 'carried', why }
}
