/** The shapes of the content blocks of a request. */
import { BETA, hasFamily } from '../protocol/api.ts'
import {
  anything,
  conditional,
  dictionary,
  type Field,
  flag,
  type Gate,
  list,
  literal,
  nullable,
  object,
  optional,
  required,
  type Shape,
  type Tag,
  tagged,
  text,
  textOr,
} from './shape.ts'

export const cacheControl: Shape = nullable(
  tagged({
    ephemeral: {
      shape: object({ type: required(literal('ephemeral')), ttl: optional(literal('5m', '1h')) }),
    },
  }),
)

const typed: Field = required(text())
const marked: Field = optional(cacheControl)
const toolUseId = text({ pattern: /^[a-zA-Z0-9_-]+$/ })

export const textBlock: Shape = object({
  type: typed,
  text: required(text()),
  cache_control: marked,
  citations: optional(nullable(list(dictionary))),
})

const imageSource = tagged({
  base64: {
    shape: object({
      type: typed,
      data: required(text({ min: 1 })),
      media_type: required(literal('image/jpeg', 'image/png', 'image/gif', 'image/webp')),
    }),
  },
  url: { shape: object({ type: typed, url: required(text()) }) },
  file: { shape: object({ type: typed, file_id: required(text()) }) },
})

const imageBlock = object({
  type: typed,
  source: required(imageSource),
  cache_control: marked,
  transformations: optional(nullable(object({ oversized_image: optional(literal('downsize', 'error')) }))),
})

const documentSource = tagged({
  base64: {
    shape: object({
      type: typed,
      data: required(text({ min: 1 })),
      media_type: required(literal('application/pdf')),
    }),
  },
  text: {
    shape: object({ type: typed, data: required(text()), media_type: required(literal('text/plain')) }),
  },
  content: {
    shape: object({
      type: typed,
      content: required(textOr(list(tagged({ text: { shape: textBlock }, image: { shape: imageBlock } })))),
    }),
  },
  url: { shape: object({ type: typed, url: required(text()) }) },
  file: { shape: object({ type: typed, file_id: required(text()) }) },
})

const citationsConfig = nullable(object({ enabled: optional(flag) }))

const documentBlock = object({
  type: typed,
  source: required(documentSource),
  cache_control: marked,
  citations: optional(citationsConfig),
  context: optional(nullable(text())),
  title: optional(nullable(text())),
})

const searchResult = object({
  type: typed,
  content: required(list(textBlock)),
  source: required(text()),
  title: required(text()),
  cache_control: marked,
  citations: optional(citationsConfig),
})

const reference = object({ type: typed, tool_name: required(text()), cache_control: marked })
const browserState = object({
  type: typed,
  tabs: required(anything),
  cache_control: marked,
  state_changes: optional(anything),
})

const toolResult = object({
  type: typed,
  tool_use_id: required(toolUseId),
  cache_control: marked,
  content: optional(
    textOr(
      list(
        tagged({
          text: { shape: textBlock },
          image: { shape: imageBlock },
          search_result: { shape: searchResult },
          document: { shape: documentBlock },
          tool_reference: { shape: reference },
          browser_state: { shape: browserState },
        }),
      ),
    ),
  ),
  is_error: optional(flag),
  toolset_name: optional(nullable(text())),
  cache_reference: conditional(text(), (features) => features.cachedClearing),
})

const toolUse = object({
  type: typed,
  id: required(toolUseId),
  name: required(text({ min: 1, max: 200 })),
  input: required(dictionary),
  cache_control: marked,
  caller: optional(dictionary),
  toolset_name: optional(nullable(text())),
})

const serverToolUse = object({
  type: typed,
  id: required(toolUseId),
  name: required(text()),
  input: required(dictionary),
  cache_control: marked,
  caller: optional(dictionary),
})

const mcpToolUse = object({
  type: typed,
  id: required(toolUseId),
  name: required(text()),
  server_name: required(text()),
  input: required(dictionary),
  cache_control: marked,
})

const serverResult = object({
  type: typed,
  tool_use_id: required(toolUseId),
  content: required(anything),
  cache_control: marked,
  caller: optional(dictionary),
})

const mcpResult = object({
  type: typed,
  tool_use_id: required(toolUseId),
  content: optional(textOr(list(textBlock))),
  is_error: optional(flag),
  cache_control: marked,
})

const toolChange = object({ type: typed, tool: required(dictionary), cache_control: marked })

const compaction = object({
  type: typed,
  cache_control: marked,
  content: optional(nullable(text({ min: 1 }))),
  encrypted_content: optional(nullable(text())),
  signature: optional(nullable(text())),
  tool_changes: optional(nullable(list(toolChange))),
})

const cacheEdits = object({
  type: typed,
  edits: required(
    list(object({ type: required(literal('delete')), cache_reference: required(text()) }), { min: 1 }),
  ),
})

const hasToolChanges = (features: Gate): boolean =>
  features.betas.has(BETA.toolChanges) || features.betas.has(BETA.inlineTools)
const hasCompaction = (features: Gate): boolean =>
  features.betas.has(BETA.thresholdCompaction) || features.betas.has(BETA.onDemandCompaction)
const hasMcp = (features: Gate): boolean => hasFamily(features.betas, 'mcp-client-')

/** The blocks of messages of any role. Which role may hold which block is checked in `role-rules.ts`. */
export const BLOCK_TAGS: Readonly<Record<string, Tag>> = {
  text: { shape: textBlock },
  image: { shape: imageBlock },
  document: { shape: documentBlock },
  search_result: { shape: searchResult },
  thinking: {
    shape: object({ type: typed, thinking: required(text()), signature: required(text({ min: 1 })) }),
  },
  redacted_thinking: { shape: object({ type: typed, data: required(text({ min: 1 })) }) },
  tool_use: { shape: toolUse },
  tool_result: { shape: toolResult },
  server_tool_use: { shape: serverToolUse },
  web_search_tool_result: { shape: serverResult },
  web_fetch_tool_result: { shape: serverResult },
  code_execution_tool_result: { shape: serverResult },
  bash_code_execution_tool_result: { shape: serverResult },
  text_editor_code_execution_tool_result: { shape: serverResult },
  tool_search_tool_result: { shape: serverResult },
  container_upload: { shape: object({ type: typed, file_id: required(text()), cache_control: marked }) },
  advisor_tool_result: { shape: serverResult, open: (features) => features.betas.has(BETA.advisor) },
  mcp_tool_use: { shape: mcpToolUse, open: hasMcp },
  mcp_tool_result: { shape: mcpResult, open: hasMcp },
  mcp_tool_listing: {
    shape: object({ type: typed, mcp_server_name: required(text()), tools: required(list(dictionary)) }),
    open: (features) => features.betas.has(BETA.mcpListing),
  },
  compaction: { shape: compaction, open: hasCompaction },
  tool_addition: { shape: toolChange, open: hasToolChanges },
  tool_removal: { shape: toolChange, open: hasToolChanges },
  fallback: {
    shape: object({
      type: typed,
      from: required(dictionary),
      to: required(dictionary),
      trigger: optional(anything),
    }),
    open: (features) => features.betas.has(BETA.fallback),
  },
  cache_edits: { shape: cacheEdits, open: (features) => features.cachedClearing },
}
