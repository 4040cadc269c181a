/**
 * One session as one HTML file that needs no other file: the page's script, allowed by its hash, and the data. Texts, paths and names of
 * the session are included only on request.
 */
import { createHash } from 'node:crypto'
import { lookUpModel, modelCatalogue } from 'tidemark/catalogue'
import type { ContextRemoval, SessionPageData } from 'tidemark/internal'
import type { SessionReport } from 'tidemark/logs'
import { createPageDocument, readBuiltFile } from './page-files.ts'

interface ExportedSession {
  readonly page: SessionPageData
  readonly departures: readonly ContextRemoval[]
  /** Texts of the blocks that left the context, by block key. If given, the file contains these and all other texts. */
  readonly texts: Readonly<Record<string, string>> | null
}

/** Returns what an exported page contains of the session. If `texts` is null, it has no text, path or name from the log. */
export function selectExportedData({ page, departures, texts }: ExportedSession): ExportedSession {
  const withText = texts !== null
  return {
    page: withText
      ? page
      : {
          ...page,
          id: EXPORTED_ID,
          report: withoutTexts(page.report),
          // The reason why an undo is refused would name the process and host that have the session open.
          undo: { target: null, why: null },
          isLive: false,
        },
    departures: withText ? departures : departures.map(withoutDepartedTexts),
    texts,
  }
}

export async function createExportedPage(session: ExportedSession): Promise<string> {
  const script = (await readBuiltFile('page.js')).replaceAll('</script', '<\\/script')
  const style = await readBuiltFile('page.css')
  // Inside a script element, only `<` could end the element or begin a comment.
  const json = JSON.stringify(selectExportedData(session)).replaceAll('<', '\\u003c')
  const policy = `default-src 'none'; script-src '${hashOf(script)}'; style-src '${hashOf(style)}'; img-src data:; base-uri 'none'; form-action 'none'`
  const head = `<meta http-equiv="content-security-policy" content="${policy}">\n<meta name="referrer" content="no-referrer">\n<style>${style}</style>`
  const body = `<script type="application/json" id="tidemark-data">${json}</script>\n<script type="module">${script}</script>`
  return createPageDocument(head, body)
}

const EXPORTED_ID = '0'

function hashOf(content: string): string {
  return `sha256-${createHash('sha256').update(content).digest('base64')}`
}

/** Returns the report without texts, paths, ids, and names of folders, subagents, files and uncommon tools. */
function withoutTexts(report: SessionReport): SessionReport {
  return {
    ...report,
    file: 'A session, without its texts',
    sessionId: null,
    project: null,
    firstPrompt: null,
    models: anonymizeModels(report.models),
    requests: report.requests.map(withCommonModel),
    spending: report.spending.map(withCommonModel),
    clearingCosts: report.clearingCosts.map(withCommonModel),
    brokenOff: report.brokenOff === null ? null : 'the log could not be read to its end',
    largest: report.largest.map((block) => ({ ...block, what: '', tool: toCommonTool(block.tool) })),
    byTool: report.byTool.map((share) => ({ ...share, tool: toCommonTool(share.tool) ?? 'tool' })),
    duplicateReads: report.duplicateReads.map((read, index) => ({ ...read, path: `file ${index + 1}` })),
    money: { ...report.money, missing: [], assumed: [] },
    cacheBreaks: report.cacheBreaks.map(({ agent, ...each }) => ({
      ...withCommonModel(each),
      evidence: '',
      ...(agent === undefined ? {} : { agent: 'subagent' }),
    })),
    agents: report.agents.map((agent, index) => ({ ...agent, id: `subagent ${index + 1}` })),
    damaged: report.damaged.map(({ kind, line }) => ({ kind, line, why: '' })),
    compactions: report.compactions.map(withoutNames),
    clearings: report.clearings.map(withoutNames),
  }
}

/** Lists models by their names in the catalogue. Others become `another model`: their names may be those of a company or a host. */
export function anonymizeModels(models: readonly string[]): readonly string[] {
  return [...new Set(models.map(toCommonModel))]
}

function toCommonModel(model: string): string {
  const found = lookUpModel(modelCatalogue, model)
  return found.found ? found.model.id : 'another model'
}

function withCommonModel<Row extends { readonly model: string }>(row: Row): Row {
  return { ...row, model: toCommonModel(row.model) }
}

/** Names of tools that come with agents. Other names may be those of a company, a host or a project. */
const COMMON_TOOLS =
  /^(?:Bash|Read|Write|Edit|MultiEdit|Grep|Glob|LS|Task|Agent|TodoWrite|WebFetch|WebSearch|Skill|shell|exec_command|apply_patch|update_plan|read_file|write_file)$/

function toCommonTool(tool: string | null): string | null {
  return tool === null || COMMON_TOOLS.test(tool) ? tool : 'other tool'
}

interface NamedRewrite {
  readonly id: string | null
  readonly trigger: string | null
  readonly afterCall: number
}

function withoutNames<Rewrite extends NamedRewrite>(rewrite: Rewrite): Rewrite {
  return { ...rewrite, id: hideId(rewrite.id), trigger: toCommonTrigger(rewrite.trigger) }
}

/** Replaces the id of a rewrite: the page needs some id to find the rewrite, but not the one in the log. */
function hideId<Id extends string | null>(id: Id): Id | string {
  return id === null ? id : createHash('sha256').update(id).digest('hex').slice(0, 12)
}

function toCommonTrigger(trigger: string | null): string | null {
  return trigger !== null && /^(?:auto|manual)$/.test(trigger) ? trigger : null
}

function withoutDepartedTexts({ receipt, gone, ...departure }: ContextRemoval): ContextRemoval {
  return {
    ...departure,
    id: hideId(departure.id),
    summary: null,
    receipt:
      receipt === null
        ? null
        : {
            ...receipt,
            files: hideTexts(receipt.files, 'file'),
            userMessages: hideTexts(receipt.userMessages, 'text'),
            errors: hideTexts(receipt.errors, 'error'),
            identifiers: hideTexts(receipt.identifiers, 'name'),
            carried: receipt.carried.map(toCommonSource),
          },
    gone: gone.map((block, index) => ({
      ...block,
      key: String(index),
      what: '',
      tool: toCommonTool(block.tool),
    })),
  }
}

/** Names of context sources that come with agents. Others are those of an application. */
const COMMON_SOURCES =
  /^(?:file|todo|plan_mode|plan_mode_exit|plan_file_reference|nested_memory|invoked_skills|skill_listing|task_status|task_reminder|todo_reminder|queued_command|edited_text_file|compact_file_reference|(?:deferred_tools|mcp_instructions|agent_listing)_delta|hook_(?:context|success|additional_context|system_message|non_blocking_error))$/

function toCommonSource(name: string): string {
  const kind = name.replace(/:.*/s, '')
  return COMMON_SOURCES.test(kind) ? kind : 'other source'
}

type Fact = NonNullable<ContextRemoval['receipt']>['files'][number]

function hideTexts(facts: readonly Fact[], kind: string): readonly Fact[] {
  return facts.map((fact, index) => ({ ...fact, text: `${kind} ${index + 1}` }))
}
