/** Undoes the newest compaction or clearing after a question. Disabled, with the reason, if the page cannot undo it. */
import { useRef, useState } from 'preact/hooks'
import type { SessionPageData } from 'tidemark/report'
import type { PageSource } from '../data/page-source.ts'

interface UndoButtonProps {
  readonly source: PageSource
  readonly page: SessionPageData
  readonly onDone: () => void
}

export function UndoButton({ source, page, onDone }: UndoButtonProps) {
  const { target, why } = page.undo ?? { target: null, why: null }
  const dialog = useRef<HTMLDialogElement>(null)
  const [message, setMessage] = useState<string | null>(null)
  const [isBusy, setBusy] = useState(false)
  if (source.isExported || page.undo === null) return null
  const what = target?.kind === 'clear' ? 'clearing' : 'compaction'
  const nothing = target === null ? 'Nothing is left to undo.' : ''
  const undo = async (): Promise<void> => {
    dialog.current?.close()
    if (target === null) return
    // The log with the undo may be shown before the answer to this request arrives.
    setBusy(true)
    const outcome = await source
      .undo(page.id, target.id)
      .catch((error: Error) => ({ ok: false, message: error.message }))
    setBusy(false)
    setMessage(outcome.message)
    onDone()
  }
  return (
    <div class="undo">
      <button
        type="button"
        class="danger"
        disabled={target === null || why !== null || isBusy}
        onClick={() => dialog.current?.showModal()}
      >
        Undo the newest {what}
      </button>
      <span role="status">{isBusy ? 'Undoing…' : (message ?? why ?? nothing)}</span>
      <dialog ref={dialog} class="panel ask" aria-label={`Undo the newest ${what}?`}>
        <h2>Undo the newest {what}?</h2>
        <p>
          A record is added to the log. The next request then shows what was there before, and what was said
          since stays. The cache is written again for it.
        </p>
        <div class="range">
          <button type="button" class="main" onClick={undo}>
            Undo it
          </button>
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
        </div>
      </dialog>
    </div>
  )
}
