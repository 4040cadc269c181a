/**
 * The tab What left: the receipt of each compaction beside its summary, a search in removed blocks, and what was needed again.
 */
import { formatCount, formatDollars, formatTokens } from '@tidemark/terminal/render/format-numbers'
import { useEffect, useRef, useState } from 'preact/hooks'
import type {
  ContextRemoval,
  LostFact,
  PageSessionReport,
  RemovedBlock,
  RemovedBlockMatch,
  SessionPageData,
} from 'tidemark/report'
import type { PageSource } from '../data/page-source.ts'
import { useLoaded } from '../data/use-loaded.ts'
import { Notice } from './notice.tsx'
import { BreakableText } from './path-text.tsx'
import { BlockLabel, LazyDetails } from './request-panel.tsx'
import { toRequestAddress } from './routes.ts'
import { UndoButton } from './undo-button.tsx'

interface LeftViewProps {
  readonly source: PageSource
  readonly page: SessionPageData
  /** Index of the request after the rewrite to scroll to; null to stay at the top. */
  readonly request: number | null
  readonly onChanged: () => void
}

export function DeparturesView({ source, page, request, onChanged }: LeftViewProps) {
  const { id, report } = page
  const version = [report.compactions, report.clearings, report.requests].map(({ length }) => length).join()
  // The key stays the same while the session grows, so that what the user has typed and opened stays, too.
  const { value, error } = useLoaded(id, () => source.loadDepartures(id), version)
  if (report.compactions.length + report.clearings.length === 0)
    return <Notice text="Nothing left the context: this log has no compaction and no clearing." />
  if (error !== null) return <Notice text={error} isError />
  if (value === null) return <Notice text="Comparing the context before and after each rewrite …" />
  return (
    <section aria-label="What left the context">
      {report.format === 'tidemark' ? <UndoButton source={source} page={page} onDone={onChanged} /> : null}
      {source.hasTexts ? <GoneSearch source={source} id={id} departures={value} /> : null}
      {value.length === 0 ? (
        <Notice text="The rewrites of this log had no request before or after them to compare." />
      ) : null}
      <LeftTotals departures={value} />
      {value.map((departure) => (
        <DepartureCard
          key={departure.id}
          departure={departure}
          source={source}
          page={page}
          isSought={departure.request === request}
        />
      ))}
    </section>
  )
}

/** What all rewrites together removed, and how much of it was needed again. */
function LeftTotals({ departures }: { readonly departures: readonly ContextRemoval[] }) {
  if (departures.length < 2) return null
  const gone = departures.flatMap((departure) => departure.gone)
  const facts = departures.flatMap(({ receipt }) =>
    receipt === null ? [] : [...receipt.files, ...receipt.identifiers],
  )
  const needed = gone.filter(({ neededAt }) => neededAt !== null)
  const named = facts.filter(({ neededAt }) => neededAt !== null).length
  return (
    <p class="lead">
      {formatCount(departures.length, 'rewrite')} removed {formatCount(gone.length, 'block')}, about{' '}
      {formatTokens(sumTokens(gone))} tokens.{' '}
      {needed.length + named === 0 ? (
        <b class="good">No later call needed any of it again.</b>
      ) : (
        <b class="bad">
          Needed again: {formatCount(needed.length, 'block')} of about {formatTokens(sumTokens(needed))}{' '}
          tokens
          {named === 0 ? '' : `, ${formatCount(named, 'name or file', 'names and files')}`}.
        </b>
      )}
    </p>
  )
}

function sumTokens(blocks: readonly RemovedBlock[]): number {
  return blocks.reduce((sum, { tokens }) => sum + tokens, 0)
}

interface GoneSearchProps {
  readonly source: PageSource
  readonly id: string
  readonly departures: readonly ContextRemoval[]
}

function GoneSearch({ source, id, departures }: GoneSearchProps) {
  const [text, setText] = useState('')
  const [found, setFound] = useState<readonly RemovedBlockMatch[] | null>(null)
  const [error, setError] = useState<string | null>(null)
  const search = (event: Event): void => {
    event.preventDefault()
    if (text.trim() === '') {
      setFound(null)
      return
    }
    source.searchDepartures(id, text.trim()).then(
      (matches) => {
        setFound(matches)
        setError(null)
      },
      (failure: Error) => setError(failure.message),
    )
  }
  const blocks = new Map(departures.flatMap(({ gone }) => gone.map((block) => [block.key, block] as const)))
  return (
    <div class="card gone-search">
      <form class="search" aria-label="Search what is gone" onSubmit={search}>
        <label>
          <span>Search what is gone</span>
          <input type="search" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        <button type="submit">Search</button>
      </form>
      {error === null ? null : <Notice text={error} isError />}
      {found === null ? null : (
        <>
          <p role="status">{formatCount(found.length, 'match', 'matches')}</p>
          <ul class="blocks">
            {found.map(({ key, excerpt }) => (
              <li key={key}>
                <GoneBlock source={source} id={id} block={blocks.get(key)} excerpt={excerpt} />
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  )
}

interface DepartureCardProps {
  /** True if a link led to this rewrite. */
  readonly isSought: boolean
  readonly departure: ContextRemoval
  readonly source: PageSource
  readonly page: SessionPageData
}

function DepartureCard({ departure, source, page, isSought }: DepartureCardProps) {
  const card = useRef<HTMLElement>(null)
  useEffect(() => {
    if (isSought) card.current?.scrollIntoView()
  }, [isSought])
  const { gone, summary, receipt, kept } = departure
  const needed = gone.filter(({ neededAt }) => neededAt !== null)
  const [onlyNeeded, setOnlyNeeded] = useState(needed.length > 0)
  const shown = (onlyNeeded && needed.length > 0 ? needed : gone).toSorted(
    (one, other) => other.tokens - one.tokens,
  )
  return (
    <article class="card departure" ref={card}>
      <h2>
        {describeDeparture(departure, page.report)}{' '}
        {departure.request < page.report.requests.length ? (
          <small>
            <a href={toRequestAddress(page.id, departure.request)}>Show on the chart</a>
          </small>
        ) : null}
      </h2>
      <p>
        {formatCount(gone.length, 'block was removed', 'blocks were removed')}, about{' '}
        {formatTokens(sumTokens(gone))} tokens; {kept === 0 ? 'no message' : formatCount(kept, 'message')}{' '}
        stayed.{' '}
        {needed.length === 0 ? (
          <b class="good">No later call needed one of them again.</b>
        ) : (
          <b class="bad">{formatCount(needed.length, 'block was', 'blocks were')} needed again.</b>
        )}
      </p>
      <div class="beside">
        {receipt === null ? null : <ReceiptLists receipt={receipt} id={page.id} hasTexts={source.hasTexts} />}
        {summary === null ? null : (
          <div>
            <h3>The summary in its place</h3>
            <pre>{summary}</pre>
          </div>
        )}
      </div>
      <h3>Blocks that left, the largest first</h3>
      {needed.length === 0 ? null : (
        <label class="check">
          <input type="checkbox" checked={onlyNeeded} onChange={() => setOnlyNeeded(!onlyNeeded)} />
          Only those that were needed again
        </label>
      )}
      <BlockList source={source} id={page.id} blocks={shown} />
    </article>
  )
}

const FIRST_BLOCKS = 20

function BlockList({
  source,
  id,
  blocks,
}: {
  readonly source: PageSource
  readonly id: string
  readonly blocks: readonly RemovedBlock[]
}) {
  const [isWhole, setWhole] = useState(false)
  const shown = isWhole ? blocks : blocks.slice(0, FIRST_BLOCKS)
  return (
    <>
      <ul class="blocks">
        {shown.map((block) => (
          <li key={block.key}>
            <GoneBlock source={source} id={id} block={block} />
          </li>
        ))}
      </ul>
      {shown.length === blocks.length ? null : (
        <button type="button" onClick={() => setWhole(true)}>
          Show all {blocks.length}
        </button>
      )}
    </>
  )
}

function describeDeparture(
  { id, kind, request }: ContextRemoval,
  { compactions, clearings, requests }: PageSessionReport,
): string {
  const place = request < requests.length ? `before request ${request + 1}` : 'after the last request'
  if (kind === 'clearing') {
    const cleared = clearings.find((each) => each.id === id)
    return `Clearing ${place}: ${formatCount(cleared?.results ?? 0, 'tool result')}${cleared?.isUndone === true ? ', undone later' : ''}`
  }
  const logged = compactions.find((each) => each.id === id)
  const size = (tokens: number | null | undefined): string => (tokens == null ? '?' : formatTokens(tokens))
  const cost = logged?.costUsd == null ? '' : `, ${formatDollars(logged.costUsd)}`
  return `Compaction ${place}: ${size(logged?.preTokens)} to ${size(logged?.postTokens)} tokens${cost}${logged?.isUndone === true ? ', undone later' : ''}`
}

interface ReceiptListsProps {
  readonly receipt: NonNullable<ContextRemoval['receipt']>
  readonly id: string
  readonly hasTexts: boolean
}

function ReceiptLists({ receipt, id, hasTexts }: ReceiptListsProps) {
  const { files, userMessages, errors, identifiers, moreIdentifiers, carried } = receipt
  const shared = { id, hasTexts }
  return (
    <div class="receipt">
      <h3>Receipt: what the new context no longer mentions</h3>
      <FactList {...shared} title="Files" facts={files} />
      <FactList {...shared} title="Names in code" facts={identifiers} more={moreIdentifiers} isInline />
      <FactList {...shared} title="Errors" facts={errors} />
      <FactList {...shared} title="Texts of the user" facts={userMessages} />
      <p class="where">
        {carried.length === 0 ? 'Nothing was attached again.' : `Attached again: ${countNames(carried)}.`}
      </p>
    </div>
  )
}

/** Lists names with their counts, such as "file × 4, todo". */
function countNames(names: readonly string[]): string {
  // The key of a source begins with the name of what reads it: "file: files:/home/user/a.ts".
  return [...Map.groupBy(names, (name) => name.replace(/: \w+:/, ' ').trim())]
    .map(([name, { length }]) => (length === 1 ? name : `${name} × ${length}`))
    .join(', ')
}

interface FactListProps {
  readonly id: string
  /** Without texts, only what a later call named is listed: the rest would be numbers. */
  readonly hasTexts: boolean
  readonly title: string
  readonly facts: readonly LostFact[]
  readonly more?: number
  readonly isInline?: boolean
}

function FactList({ id, hasTexts, title, facts, more = 0, isInline = false }: FactListProps) {
  const sorted = facts
    .filter(({ neededAt }) => hasTexts || neededAt !== null)
    .toSorted((one, other) => Number(other.neededAt !== null) - Number(one.neededAt !== null))
  if (facts.length === 0)
    return (
      <p>
        <b>{title}</b>: <span class="good">none lost</span>
      </p>
    )
  const needed = facts.filter(({ neededAt }) => neededAt !== null).length
  return (
    <div>
      <p>
        <b>{title}</b>: {facts.length + more} lost
        {needed === 0 ? '' : <b class="bad">, {needed} named again later</b>}
      </p>
      {sorted.length === 0 ? null : (
        <ul class={isInline ? 'facts inline' : 'facts'}>
          {sorted.map(({ text, neededAt, line }) => (
            <li key={`${line}${text}`} class={neededAt === null ? '' : 'needed'}>
              <BreakableText text={text} />
              {neededAt === null ? null : (
                <a class="at" href={toRequestAddress(id, neededAt)}>
                  request {neededAt + 1}
                </a>
              )}
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}

interface GoneBlockProps {
  readonly source: PageSource
  readonly id: string
  readonly block: RemovedBlock | undefined
  readonly excerpt?: string
}

function GoneBlock({ source, id, block, excerpt }: GoneBlockProps) {
  if (block === undefined) return null
  const mark =
    block.neededAt === null ? null : (
      <em class="bad">
        {block.how} at request {block.neededAt + 1}
      </em>
    )
  const summary = <BlockLabel block={block} mark={mark} preview={excerpt ?? block.what} />
  if (!source.hasTexts)
    return (
      <div class="block-line">
        {summary}
        {block.neededAt === null ? null : (
          <a href={toRequestAddress(id, block.neededAt)}>request {block.neededAt + 1}</a>
        )}
      </div>
    )
  return (
    <LazyDetails summary={summary}>
      {block.neededAt === null ? null : (
        <p>
          <a href={toRequestAddress(id, block.neededAt)}>Show request {block.neededAt + 1} on the chart</a>
        </p>
      )}
      <GoneText source={source} id={id} blockKey={block.key} />
    </LazyDetails>
  )
}

function GoneText({
  source,
  id,
  blockKey,
}: {
  readonly source: PageSource
  readonly id: string
  readonly blockKey: string
}) {
  const { value, error } = useLoaded(blockKey, () => source.loadDepartedText(id, blockKey))
  if (error !== null) return <Notice text={error} isError />
  return value === null ? <Notice text="Loading …" /> : <pre>{value.text}</pre>
}
