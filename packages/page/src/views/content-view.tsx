/** The tab What filled it: tokens by kind and tool, the largest blocks, files read more than once, and what subagents cost. */
import {
  formatCost,
  formatCount,
  formatDollars,
  formatTokens,
  formatWholePercent,
} from '@tidemark/terminal/render/format-numbers'
import { useState } from 'preact/hooks'
import type { PageSessionReport } from 'tidemark/report'
import { CONTENT_CLASSES, countClassTokens } from '../chart/content-classes.ts'
import { Notice } from './notice.tsx'
import { BreakableText } from './path-text.tsx'
import { BlockLabel } from './request-panel.tsx'
import { toRequestAddress } from './routes.ts'

interface ContentViewProps {
  readonly id: string
  readonly report: PageSessionReport
}

export function ContentView({ id, report }: ContentViewProps) {
  const { byTool, largest, duplicateReads, agents } = report
  return (
    <section aria-label="What filled the context">
      <SentBars report={report} />
      <div class="beside">
        {byTool.length === 0 ? null : <ToolTable tools={byTool} />}
        <div>
          {agents.length === 0 ? null : <AgentTable report={report} />}
          {duplicateReads.length === 0 ? null : <RepeatedReads reads={duplicateReads} />}
        </div>
      </div>
      {largest.length === 0 ? null : (
        <div class="card">
          <h2>The largest blocks</h2>
          <ul class="blocks">
            {largest.map((block) => (
              <li key={`${block.line}${block.tokens}`} class="block-line">
                <BlockLabel block={{ ...block, role: '', line: null }} mark={null} preview={block.what} />
                <FirstRequest id={id} report={report} line={block.line} />
              </li>
            ))}
          </ul>
        </div>
      )}
    </section>
  )
}

/** Links to the first request that had the block of this line of the log. A block of the last response was in none yet. */
function FirstRequest({ id, report, line }: ContentViewProps & { readonly line: number }) {
  const index = report.requests.findIndex((request) => request.line > line)
  return index === -1 ? <>line {line}</> : <a href={toRequestAddress(id, index)}>request {index + 1}</a>
}

/** Shows the tokens summed over all requests, because every call sends the whole context again. */
function SentBars({ report }: { readonly report: PageSessionReport }) {
  const sent = report.requests.reduce((sum, { tokens }) => sum + tokens, 0)
  if (sent === 0) return <Notice text="This log has no request with a size." />
  const classes = CONTENT_CLASSES.map((kind) => ({
    ...kind,
    part: report.requests.reduce((sum, request) => sum + countClassTokens(request, kind), 0),
  }))
    .filter(({ part }) => part > 0)
    .toSorted((one, other) => other.part - one.part)
  const most = classes[0]?.part ?? 1
  return (
    <div class="card">
      <h2>
        Sent in all requests{' '}
        <small>{formatTokens(sent)} tokens, because each call sends the context again</small>
      </h2>
      <ul class="bars two-figures">
        {classes.map(({ key, label, part }) => (
          <li key={key}>
            <span>{label}</span>
            <svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
              <rect class={`class-${key}`} width={Math.max(0.6, (100 * part) / most)} height="8" />
            </svg>
            <span class="number">{formatWholePercent(part / sent)}</span>
            <small class="number">{formatTokens(part)}</small>
          </li>
        ))}
      </ul>
    </div>
  )
}

const FIRST_TOOLS = 8

function ToolTable({ tools }: { readonly tools: PageSessionReport['byTool'] }) {
  const [isWhole, setWhole] = useState(false)
  const shown = isWhole ? tools : tools.slice(0, FIRST_TOOLS)
  const total = tools.reduce((sum, { requestTokens, resultTokens }) => sum + requestTokens + resultTokens, 0)
  return (
    <div class="card">
      <h2>
        By tool <small>tokens, each block counted once</small>
      </h2>
      <table class="plain" aria-label="By tool">
        <thead>
          <tr>
            <th scope="col">Tool</th>
            {['Calls', 'Arguments', 'Results', 'Share'].map((title) => (
              <th key={title} scope="col" class="number">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map(({ tool, calls, requestTokens, resultTokens }) => (
            <tr key={tool}>
              <td class="any-text">{tool}</td>
              <td class="number">{calls}</td>
              <td class="number">{formatTokens(requestTokens)}</td>
              <td class="number">{formatTokens(resultTokens)}</td>
              <td class="number">
                {formatWholePercent((requestTokens + resultTokens) / Math.max(1, total))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {shown.length === tools.length ? null : (
        <button type="button" onClick={() => setWhole(true)}>
          Show all {tools.length} tools
        </button>
      )}
    </div>
  )
}

function AgentTable({ report }: { readonly report: PageSessionReport }) {
  const { agents, money } = report
  const known = agents.reduce((sum, { costUsd }) => sum + (costUsd ?? 0), 0)
  const isPart = agents.some(({ costUsd }) => costUsd === null)
  return (
    <div class="card">
      <h2>
        Subagents{' '}
        <small>
          {formatCost(isPart ? null : known, known)},{' '}
          {formatWholePercent(known / Math.max(money.pricedUsd, known, 0.000_001))} of the cost
        </small>
      </h2>
      <table class="plain" aria-label="Subagents">
        <thead>
          <tr>
            <th scope="col">Subagent</th>
            {['Calls', 'Cost'].map((title) => (
              <th key={title} scope="col" class="number">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {agents
            .toSorted((one, other) => (other.costUsd ?? 0) - (one.costUsd ?? 0))
            .map(({ id, apiCalls, costUsd }) => (
              <tr key={id}>
                <td class="any-text">{id}</td>
                <td class="number">{apiCalls}</td>
                <td class="number">{costUsd === null ? '?' : formatDollars(costUsd)}</td>
              </tr>
            ))}
        </tbody>
      </table>
    </div>
  )
}

function RepeatedReads({ reads }: { readonly reads: PageSessionReport['duplicateReads'] }) {
  const tokens = reads.reduce((sum, read) => sum + read.tokens, 0)
  return (
    <div class="card">
      <h2>
        Files read more than once <small>{formatTokens(tokens)} tokens read again</small>
      </h2>
      <table class="plain" aria-label="Files read more than once">
        <tbody>
          {reads.map((read) => (
            <tr key={read.path}>
              <td class="any-text">
                <BreakableText text={read.path} />
              </td>
              <td class="number">{formatCount(read.count, 'time')}</td>
              <td class="number">{formatTokens(read.tokens)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
