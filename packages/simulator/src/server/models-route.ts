/** `GET /v1/models`: what each model takes, as the provider tells it. */
import type { Effort, SimulatedModel } from '../models.ts'
import { BETA } from '../validation/betas.ts'

export interface ModelPage {
  readonly data: readonly object[]
  readonly has_more: boolean
  readonly first_id: string | null
  readonly last_id: string | null
}

export interface PageQuery {
  readonly limit?: string
  readonly after_id?: string
  readonly before_id?: string
}

export function modelPage(
  models: readonly SimulatedModel[],
  query: PageQuery,
  betas: ReadonlySet<string>,
): ModelPage {
  const limit = Math.max(1, Math.min(1_000, Number(query.limit ?? 20) || 20))
  const ids = models.map((model) => model.id)
  const start = query.after_id === undefined ? 0 : ids.indexOf(query.after_id) + 1
  const end = query.before_id === undefined ? ids.length : Math.max(0, ids.indexOf(query.before_id))
  const within = models.slice(start, end)
  const page = query.before_id === undefined ? within.slice(0, limit) : within.slice(-limit)
  return {
    data: page.map((model) => modelView(model, betas)),
    has_more: page.length < within.length,
    first_id: page[0]?.id ?? null,
    last_id: page.at(-1)?.id ?? null,
  }
}

const supported = (yes: boolean): { readonly supported: boolean } => ({ supported: yes })
const EFFORTS: readonly Effort[] = ['low', 'medium', 'high', 'xhigh', 'max']

export function modelView(model: SimulatedModel, betas: ReadonlySet<string>): object {
  const thinks = (type: string): { readonly supported: boolean } =>
    supported(model.thinking.some((known) => known === type))
  return {
    id: model.id,
    type: 'model',
    display_name: model.displayName,
    created_at: model.createdAt,
    lifecycle: 'active',
    deprecated_at: null,
    retires_at: null,
    line: model.id.match(/haiku|sonnet|opus|fable|mythos/)?.[0] ?? null,
    max_input_tokens: model.window,
    max_tokens: model.maxOutput,
    capabilities: {
      batch: supported(false),
      citations: supported(true),
      code_execution: supported(false),
      context_management: {
        supported: model.contextEditing,
        clear_tool_uses_20250919: supported(model.contextEditing),
        clear_thinking_20251015: supported(model.contextEditing),
        compact_20260112: supported(model.compaction),
      },
      effort: {
        supported: model.thinking.includes('adaptive'),
        ...Object.fromEntries(EFFORTS.map((effort) => [effort, thinks('adaptive')])),
      },
      image_input: supported(true),
      pdf_input: supported(true),
      server_tools: supported(false),
      structured_outputs: supported(true),
      thinking: {
        supported: model.thinking.length > 0,
        types: {
          adaptive: thinks('adaptive'),
          between_tools: thinks('between_tools'),
          disabled: thinks('disabled'),
          enabled: thinks('enabled'),
        },
      },
      ...(betas.has(BETA.onDemandCompaction)
        ? { compaction: { supported: model.compaction, summarize: supported(model.compaction) } }
        : {}),
    },
  }
}
