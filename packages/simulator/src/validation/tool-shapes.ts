/** Tool definitions: custom ones field by field, the provider's own by the fields any of them has. */
import { cacheControl } from './block-shapes.ts'
import {
  anything,
  list,
  nullable,
  object,
  optional,
  required,
  type Shape,
  type Tag,
  tagged,
} from './shape.ts'
import { dictionary, flag, literal, text } from './values.ts'

export const TOOL_NAME: RegExp = /^[a-zA-Z0-9_-]{1,128}$/

const inputSchema: Shape = (value, gate) =>
  dictionary(value, gate) ?? object({ type: required(literal('object')) })(onlyType(value), gate)

/** The rest of a schema is JSON schema: open, and none of our business. */
function onlyType(value: unknown): unknown {
  const { type } = value as { readonly type?: unknown }
  return type === undefined ? {} : { type }
}

const custom = object({
  type: optional(nullable(literal('custom'))),
  name: required(text({ pattern: TOOL_NAME })),
  description: optional(text()),
  input_schema: required(inputSchema),
  cache_control: optional(cacheControl),
  defer_loading: optional(flag),
  strict: optional(flag),
  eager_input_streaming: optional(nullable(flag)),
  input_examples: optional(list(dictionary)),
  allowed_callers: optional(list(text())),
})

const provided = object({
  type: required(text()),
  name: optional(text({ pattern: TOOL_NAME })),
  cache_control: optional(cacheControl),
  defer_loading: optional(flag),
  strict: optional(flag),
  ...Object.fromEntries(
    [
      'allowed_callers',
      'allowed_domains',
      'blocked_domains',
      'caching',
      'citations',
      'configs',
      'default_config',
      'display_height_px',
      'display_number',
      'display_width_px',
      'enable_zoom',
      'input_examples',
      'max_characters',
      'max_content_tokens',
      'max_tokens',
      'max_uses',
      'mcp_server_name',
      'model',
      'response_inclusion',
      'tools',
      'url_sources',
      'use_cache',
      'user_location',
    ].map((name) => [name, optional(anything)]),
  ),
})

const PROVIDED_TYPES: readonly string[] = [
  'advisor_20260301',
  'bash_20241022',
  'bash_20250124',
  'browser_toolset_20260801',
  'code_execution_20250522',
  'code_execution_20250825',
  'code_execution_20260120',
  'code_execution_20260521',
  'computer_20241022',
  'computer_20250124',
  'computer_20251124',
  'computer_toolset_20260801',
  'mcp_toolset',
  'memory_20250818',
  'text_editor_20241022',
  'text_editor_20250124',
  'text_editor_20250429',
  'text_editor_20250728',
  'tool_search_tool_bm25',
  'tool_search_tool_bm25_20251119',
  'tool_search_tool_regex',
  'tool_search_tool_regex_20251119',
  'web_fetch_20250910',
  'web_fetch_20260209',
  'web_fetch_20260309',
  'web_fetch_20260318',
  'web_search_20250305',
  'web_search_20260209',
  'web_search_20260318',
]

const TAGS: Readonly<Record<string, Tag>> = {
  custom: { shape: custom },
  ...Object.fromEntries(PROVIDED_TYPES.map((type) => [type, { shape: provided }])),
}

export const toolDefinition: Shape = tagged(TAGS, 'custom')
