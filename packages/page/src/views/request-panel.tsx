/** A dialog with everything that the model was shown in one request: a line for each block, which opens to the block's text. */
import { formatCount, formatTokens } from '@tidemark/terminal/render/format-numbers'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { RequestContents, SessionPageData, ShownBlock } from 'tidemark/report'
import { listChartFlags } from '../chart/chart-flags.ts'
import type { PageSource } from '../data/page-source.ts'
import { useLoaded } from '../data/use-loaded.ts'
import { FlagLine } from './flag-line.tsx'
import { Notice } from './notice.tsx'
import { OneLineText } from './path-text.tsx'

interface RequestPanelProps {
  readonly source: PageSource
  readonly page: SessionPageData
  readonly index: number
  readonly onClose: () => void
}

export function RequestPanel({ source, page: { id, report }, index, onClose }: RequestPanelProps) {
  const flags = listChartFlags(report).filter(({ request }) => request === index)
  const { value, error } = useLoaded(`${id}/${index}`, () => source.loadRequest(id, index))
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    dialog.current?.showModal()
  }, [])
  return (
    <dialog ref={dialog} class="panel" aria-label={`Request ${index + 1}`} onClose={onClose}>
      <div class="panel-head">
        <h2>Request {index + 1}: exactly what the model was shown</h2>
        <button type="button" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </div>
      {flags.map((flag) => (
        <FlagLine key={`${flag.kind}${flag.title}`} flag={flag} id={id} />
      ))}
      {error === null ? null : <Notice text={error} isError />}
      {value === null ? (
        error === null ? (
          <Notice text="Rebuilding the request …" />
        ) : null
      ) : (
        <Blocks detail={value} />
      )}
    </dialog>
  )
}

function Blocks({ detail }: { readonly detail: RequestContents }) {
  const [onlyNew, setOnlyNew] = useState(true)
  const fresh = detail.blocks.filter(({ isNew }) => isNew)
  const shown = onlyNew ? fresh : detail.blocks
  return (
    <>
      <p class="where">
        {detail.model} · line {detail.line} of the log ·{' '}
        {detail.system.length + detail.tools.length === 0
          ? 'this log does not have its system prompt and tools'
          : `${formatCount(detail.system.length, 'section')} of system prompt, ${formatCount(detail.tools.length, 'tool')}`}
      </p>
      {[...detail.system, ...detail.tools].length === 0 ? null : (
        <LazyDetails summary="System prompt and tools">
          {[...detail.system, ...detail.tools].map(({ name, text }) => (
            <LazyDetails key={name} summary={name}>
              <pre>{text}</pre>
            </LazyDetails>
          ))}
        </LazyDetails>
      )}
      <label class="check">
        <input type="checkbox" checked={onlyNew} onChange={() => setOnlyNew(!onlyNew)} />
        Only what is new since the request before: {formatCount(fresh.length, 'block')} of{' '}
        {detail.blocks.length}
      </label>
      <ol class="blocks">
        {shown.map((block, place) => (
          <li key={`${block.line}.${place}`}>
            <BlockLine block={block} isNew={block.isNew && !onlyNew} />
          </li>
        ))}
      </ol>
      <h3>What it answered</h3>
      <ol class="blocks">
        {detail.response.map((block, place) => (
          <li key={`${block.line}.${place}`}>
            <BlockLine block={block} isNew={false} />
          </li>
        ))}
      </ol>
    </>
  )
}

const KIND_CLASSES: Readonly<Record<string, string>> = {
  result: 'results',
  request: 'calls',
  prompt: 'user',
  text: 'reply',
  thinking: 'thinking',
  summary: 'summary',
  attachment: 'attached',
  other: 'attached',
}
const KIND_TITLES: Readonly<Record<string, string>> = {
  result: 'result',
  request: 'call',
  prompt: 'user',
  text: 'reply',
}

interface BlockLineProps {
  readonly block: ShownBlock
  readonly isNew: boolean
}

function BlockLine({ block, isNew }: BlockLineProps) {
  const { what, text } = block
  const preview = what === '' ? text.slice(0, PREVIEW_CHARACTERS) : what
  return (
    <LazyDetails summary={<BlockLabel block={block} mark={isNew ? <em>new</em> : null} preview={preview} />}>
      <pre>{text}</pre>
    </LazyDetails>
  )
}

const PREVIEW_CHARACTERS = 200

interface BlockSummaryProps {
  readonly block: Omit<ShownBlock, 'text'>
  readonly mark: ComponentChildren
  readonly preview: string
}

/** The content of one line about a block: its kind, a mark, its first words, its tokens and its line in the log. */
export function BlockLabel({ block, mark, preview }: BlockSummaryProps) {
  const { kind, tool, tokens, line } = block
  return (
    <>
      <i class={`swatch class-${KIND_CLASSES[kind] ?? 'attached'}`} />
      <b>{[tool, KIND_TITLES[kind] ?? kind].filter((part) => part !== null).join(' ')}</b> {mark}
      <OneLineText text={preview} />
      <span class="number">
        {formatTokens(tokens)} tokens{line === null ? '' : ` · line ${line}`}
      </span>
    </>
  )
}

interface OpeningProps {
  readonly summary: ComponentChildren
  readonly children: ComponentChildren
}

/** A line that can be opened. Its content is added to the page only when it is opened. */
export function LazyDetails({ summary, children }: OpeningProps) {
  const [isOpen, setOpen] = useState(false)
  return (
    <details class="opening" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{summary}</summary>
      {isOpen ? children : null}
    </details>
  )
}
