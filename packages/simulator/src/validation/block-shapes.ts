/** Shapes (validation functions) for the content blocks of a request. */
import { BETA_NAMES, hasBetaFamily } from '../protocol/messages-request.ts'
import {
  type ApiFeatures,
  anyShape,
  booleanShape,
  conditionalField,
  dictionaryShape,
  listShape,
  literalShape,
  nullableShape,
  objectShape,
  optionalField,
  requiredField,
  type ShapeField,
  type ShapeValidator,
  stringOrShape,
  stringShape,
  type UnionMember,
  unionShape,
} from './shape.ts'

export const cacheControlShape: ShapeValidator = nullableShape(
  unionShape({
    ephemeral: {
      shape: objectShape({
        type: requiredField(literalShape('ephemeral')),
        ttl: optionalField(literalShape('5m', '1h')),
      }),
    },
  }),
)

const typeField: ShapeField = requiredField(stringShape())
const cacheControlField: ShapeField = optionalField(cacheControlShape)
const toolUseId = stringShape({ pattern: /^[a-zA-Z0-9_-]+$/ })

export const textBlockShape: ShapeValidator = objectShape({
  type: typeField,
  text: requiredField(stringShape()),
  cache_control: cacheControlField,
  citations: optionalField(nullableShape(listShape(dictionaryShape))),
})

const imageSource = unionShape({
  base64: {
    shape: objectShape({
      type: typeField,
      data: requiredField(stringShape({ min: 1 })),
      media_type: requiredField(literalShape('image/jpeg', 'image/png', 'image/gif', 'image/webp')),
    }),
  },
  url: { shape: objectShape({ type: typeField, url: requiredField(stringShape()) }) },
  file: { shape: objectShape({ type: typeField, file_id: requiredField(stringShape()) }) },
})

const imageBlock = objectShape({
  type: typeField,
  source: requiredField(imageSource),
  cache_control: cacheControlField,
  transformations: optionalField(
    nullableShape(objectShape({ oversized_image: optionalField(literalShape('downsize', 'error')) })),
  ),
})

const documentSource = unionShape({
  base64: {
    shape: objectShape({
      type: typeField,
      data: requiredField(stringShape({ min: 1 })),
      media_type: requiredField(literalShape('application/pdf')),
    }),
  },
  text: {
    shape: objectShape({
      type: typeField,
      data: requiredField(stringShape()),
      media_type: requiredField(literalShape('text/plain')),
    }),
  },
  content: {
    shape: objectShape({
      type: typeField,
      content: requiredField(
        stringOrShape(
          listShape(unionShape({ text: { shape: textBlockShape }, image: { shape: imageBlock } })),
        ),
      ),
    }),
  },
  url: { shape: objectShape({ type: typeField, url: requiredField(stringShape()) }) },
  file: { shape: objectShape({ type: typeField, file_id: requiredField(stringShape()) }) },
})

const citationsConfig = nullableShape(objectShape({ enabled: optionalField(booleanShape) }))

const documentBlock = objectShape({
  type: typeField,
  source: requiredField(documentSource),
  cache_control: cacheControlField,
  citations: optionalField(citationsConfig),
  context: optionalField(nullableShape(stringShape())),
  title: optionalField(nullableShape(stringShape())),
})

const searchResult = objectShape({
  type: typeField,
  content: requiredField(listShape(textBlockShape)),
  source: requiredField(stringShape()),
  title: requiredField(stringShape()),
  cache_control: cacheControlField,
  citations: optionalField(citationsConfig),
})

const reference = objectShape({
  type: typeField,
  tool_name: requiredField(stringShape()),
  cache_control: cacheControlField,
})
const browserState = objectShape({
  type: typeField,
  tabs: requiredField(anyShape),
  cache_control: cacheControlField,
  state_changes: optionalField(anyShape),
})

const toolResult = objectShape({
  type: typeField,
  tool_use_id: requiredField(toolUseId),
  cache_control: cacheControlField,
  content: optionalField(
    stringOrShape(
      listShape(
        unionShape({
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
  is_error: optionalField(booleanShape),
  toolset_name: optionalField(nullableShape(stringShape())),
  cache_reference: conditionalField(stringShape(), (features) => features.cachedClearing),
})

const toolUse = objectShape({
  type: typeField,
  id: requiredField(toolUseId),
  name: requiredField(stringShape({ min: 1, max: 200 })),
  input: requiredField(dictionaryShape),
  cache_control: cacheControlField,
  caller: optionalField(dictionaryShape),
  toolset_name: optionalField(nullableShape(stringShape())),
})

const serverToolUse = objectShape({
  type: typeField,
  id: requiredField(toolUseId),
  name: requiredField(stringShape()),
  input: requiredField(dictionaryShape),
  cache_control: cacheControlField,
  caller: optionalField(dictionaryShape),
})

const mcpToolUse = objectShape({
  type: typeField,
  id: requiredField(toolUseId),
  name: requiredField(stringShape()),
  server_name: requiredField(stringShape()),
  input: requiredField(dictionaryShape),
  cache_control: cacheControlField,
})

const serverResult = objectShape({
  type: typeField,
  tool_use_id: requiredField(toolUseId),
  content: requiredField(anyShape),
  cache_control: cacheControlField,
  caller: optionalField(dictionaryShape),
})

const mcpResult = objectShape({
  type: typeField,
  tool_use_id: requiredField(toolUseId),
  content: optionalField(stringOrShape(listShape(textBlockShape))),
  is_error: optionalField(booleanShape),
  cache_control: cacheControlField,
})

const toolChange = objectShape({
  type: typeField,
  tool: requiredField(dictionaryShape),
  cache_control: cacheControlField,
})

const compaction = objectShape({
  type: typeField,
  cache_control: cacheControlField,
  content: optionalField(nullableShape(stringShape({ min: 1 }))),
  encrypted_content: optionalField(nullableShape(stringShape())),
  signature: optionalField(nullableShape(stringShape())),
  tool_changes: optionalField(nullableShape(listShape(toolChange))),
})

const cacheEdits = objectShape({
  type: typeField,
  edits: requiredField(
    listShape(
      objectShape({
        type: requiredField(literalShape('delete')),
        cache_reference: requiredField(stringShape()),
      }),
      { min: 1 },
    ),
  ),
})

const hasToolChanges = (features: ApiFeatures): boolean =>
  features.betas.has(BETA_NAMES.toolChanges) || features.betas.has(BETA_NAMES.inlineTools)
const hasCompaction = (features: ApiFeatures): boolean =>
  features.betas.has(BETA_NAMES.thresholdCompaction) || features.betas.has(BETA_NAMES.onDemandCompaction)
const hasMcp = (features: ApiFeatures): boolean => hasBetaFamily(features.betas, 'mcp-client-')

/** Shapes of the blocks in messages, by block type. `message-rules.ts` checks which role may contain which block. */
export const BLOCK_SHAPES: Readonly<Record<string, UnionMember>> = {
  text: { shape: textBlockShape },
  image: { shape: imageBlock },
  document: { shape: documentBlock },
  search_result: { shape: searchResult },
  thinking: {
    shape: objectShape({
      type: typeField,
      thinking: requiredField(stringShape()),
      signature: requiredField(stringShape({ min: 1 })),
    }),
  },
  redacted_thinking: {
    shape: objectShape({ type: typeField, data: requiredField(stringShape({ min: 1 })) }),
  },
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
    shape: objectShape({
      type: typeField,
      file_id: requiredField(stringShape()),
      cache_control: cacheControlField,
    }),
  },
  advisor_tool_result: { shape: serverResult, open: (features) => features.betas.has(BETA_NAMES.advisor) },
  mcp_tool_use: { shape: mcpToolUse, open: hasMcp },
  mcp_tool_result: { shape: mcpResult, open: hasMcp },
  mcp_tool_listing: {
    shape: objectShape({
      type: typeField,
      mcp_server_name: requiredField(stringShape()),
      tools: requiredField(listShape(dictionaryShape)),
    }),
    open: (features) => features.betas.has(BETA_NAMES.mcpListing),
  },
  compaction: { shape: compaction, open: hasCompaction },
  tool_addition: { shape: toolChange, open: hasToolChanges },
  tool_removal: { shape: toolChange, open: hasToolChanges },
  fallback: {
    shape: objectShape({
      type: typeField,
      from: requiredField(dictionaryShape),
      to: requiredField(dictionaryShape),
      trigger: optionalField(anyShape),
    }),
    open: (features) => features.betas.has(BETA_NAMES.fallback),
  },
  cache_edits: { shape: cacheEdits, open: (features) => features.cachedClearing },
}
