/** Shapes (validation functions) for the content blocks of a request. */
import { BETA, hasBetaFamily } from '../protocol/api.ts'
import {
  type ApiFeatures,
  anything,
  boolean,
  conditionalField,
  dictionary,
  type Field,
  field,
  list,
  literal,
  nullable,
  object,
  optional,
  type Shape,
  string,
  stringOr,
  type UnionMember,
  union,
} from './shape.ts'

export const cacheControlShape: Shape = nullable(
  union({
    ephemeral: {
      shape: object({ type: field(literal('ephemeral')), ttl: optional(literal('5m', '1h')) }),
    },
  }),
)

const typeField: Field = field(string())
const cacheControlField: Field = optional(cacheControlShape)
const toolUseId = string({ pattern: /^[a-zA-Z0-9_-]+$/ })

export const textBlockShape: Shape = object({
  type: typeField,
  text: field(string()),
  cache_control: cacheControlField,
  citations: optional(nullable(list(dictionary))),
})

const imageSource = union({
  base64: {
    shape: object({
      type: typeField,
      data: field(string({ min: 1 })),
      media_type: field(literal('image/jpeg', 'image/png', 'image/gif', 'image/webp')),
    }),
  },
  url: { shape: object({ type: typeField, url: field(string()) }) },
  file: { shape: object({ type: typeField, file_id: field(string()) }) },
})

const imageBlock = object({
  type: typeField,
  source: field(imageSource),
  cache_control: cacheControlField,
  transformations: optional(nullable(object({ oversized_image: optional(literal('downsize', 'error')) }))),
})

const documentSource = union({
  base64: {
    shape: object({
      type: typeField,
      data: field(string({ min: 1 })),
      media_type: field(literal('application/pdf')),
    }),
  },
  text: {
    shape: object({ type: typeField, data: field(string()), media_type: field(literal('text/plain')) }),
  },
  content: {
    shape: object({
      type: typeField,
      content: field(
        stringOr(list(union({ text: { shape: textBlockShape }, image: { shape: imageBlock } }))),
      ),
    }),
  },
  url: { shape: object({ type: typeField, url: field(string()) }) },
  file: { shape: object({ type: typeField, file_id: field(string()) }) },
})

const citationsConfig = nullable(object({ enabled: optional(boolean) }))

const documentBlock = object({
  type: typeField,
  source: field(documentSource),
  cache_control: cacheControlField,
  citations: optional(citationsConfig),
  context: optional(nullable(string())),
  title: optional(nullable(string())),
})

const searchResult = object({
  type: typeField,
  content: field(list(textBlockShape)),
  source: field(string()),
  title: field(string()),
  cache_control: cacheControlField,
  citations: optional(citationsConfig),
})

const reference = object({ type: typeField, tool_name: field(string()), cache_control: cacheControlField })
const browserState = object({
  type: typeField,
  tabs: field(anything),
  cache_control: cacheControlField,
  state_changes: optional(anything),
})

const toolResult = object({
  type: typeField,
  tool_use_id: field(toolUseId),
  cache_control: cacheControlField,
  content: optional(
    stringOr(
      list(
        union({
          text: { shape: textBlockShape },
          image: { shape: imageBlock },
          search_result: { shape: searchResult },
          document: { shape: documentBlock },
          tool_reference: { shape: reference },
          browser_state: { shape: browserState },
        }),
      ),
    ),
  ),
  is_error: optional(boolean),
  toolset_name: optional(nullable(string())),
  cache_reference: conditionalField(string(), (features) => features.cachedClearing),
})

const toolUse = object({
  type: typeField,
  id: field(toolUseId),
  name: field(string({ min: 1, max: 200 })),
  input: field(dictionary),
  cache_control: cacheControlField,
  caller: optional(dictionary),
  toolset_name: optional(nullable(string())),
})

const serverToolUse = object({
  type: typeField,
  id: field(toolUseId),
  name: field(string()),
  input: field(dictionary),
  cache_control: cacheControlField,
  caller: optional(dictionary),
})

const mcpToolUse = object({
  type: typeField,
  id: field(toolUseId),
  name: field(string()),
  server_name: field(string()),
  input: field(dictionary),
  cache_control: cacheControlField,
})

const serverResult = object({
  type: typeField,
  tool_use_id: field(toolUseId),
  content: field(anything),
  cache_control: cacheControlField,
  caller: optional(dictionary),
})

const mcpResult = object({
  type: typeField,
  tool_use_id: field(toolUseId),
  content: optional(stringOr(list(textBlockShape))),
  is_error: optional(boolean),
  cache_control: cacheControlField,
})

const toolChange = object({ type: typeField, tool: field(dictionary), cache_control: cacheControlField })

const compaction = object({
  type: typeField,
  cache_control: cacheControlField,
  content: optional(nullable(string({ min: 1 }))),
  encrypted_content: optional(nullable(string())),
  signature: optional(nullable(string())),
  tool_changes: optional(nullable(list(toolChange))),
})

const cacheEdits = object({
  type: typeField,
  edits: field(
    list(object({ type: field(literal('delete')), cache_reference: field(string()) }), { min: 1 }),
  ),
})

const hasToolChanges = (features: ApiFeatures): boolean =>
  features.betas.has(BETA.toolChanges) || features.betas.has(BETA.inlineTools)
const hasCompaction = (features: ApiFeatures): boolean =>
  features.betas.has(BETA.thresholdCompaction) || features.betas.has(BETA.onDemandCompaction)
const hasMcp = (features: ApiFeatures): boolean => hasBetaFamily(features.betas, 'mcp-client-')

/** Shapes of the blocks in messages, by block type. `role-rules.ts` checks which role may contain which block. */
export const BLOCK_SHAPES: Readonly<Record<string, UnionMember>> = {
  text: { shape: textBlockShape },
  image: { shape: imageBlock },
  document: { shape: documentBlock },
  search_result: { shape: searchResult },
  thinking: {
    shape: object({ type: typeField, thinking: field(string()), signature: field(string({ min: 1 })) }),
  },
  redacted_thinking: { shape: object({ type: typeField, data: field(string({ min: 1 })) }) },
  tool_use: { shape: toolUse },
  tool_result: { shape: toolResult },
  server_tool_use: { shape: serverToolUse },
  web_search_tool_result: { shape: serverResult },
  web_fetch_tool_result: { shape: serverResult },
  code_execution_tool_result: { shape: serverResult },
  bash_code_execution_tool_result: { shape: serverResult },
  text_editor_code_execution_tool_result: { shape: serverResult },
  tool_search_tool_result: { shape: serverResult },
  container_upload: {
    shape: object({ type: typeField, file_id: field(string()), cache_control: cacheControlField }),
  },
  advisor_tool_result: { shape: serverResult, open: (features) => features.betas.has(BETA.advisor) },
  mcp_tool_use: { shape: mcpToolUse, open: hasMcp },
  mcp_tool_result: { shape: mcpResult, open: hasMcp },
  mcp_tool_listing: {
    shape: object({ type: typeField, mcp_server_name: field(string()), tools: field(list(dictionary)) }),
    open: (features) => features.betas.has(BETA.mcpListing),
  },
  compaction: { shape: compaction, open: hasCompaction },
  tool_addition: { shape: toolChange, open: hasToolChanges },
  tool_removal: { shape: toolChange, open: hasToolChanges },
  fallback: {
    shape: object({
      type: typeField,
      from: field(dictionary),
      to: field(dictionary),
      trigger: optional(anything),
    }),
    open: (features) => features.betas.has(BETA.fallback),
  },
  cache_edits: { shape: cacheEdits, open: (features) => features.cachedClearing },
}
