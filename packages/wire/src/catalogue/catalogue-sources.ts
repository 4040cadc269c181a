/** Sources of the figures in catalogue entries, and the day on which each source was read. */
interface CatalogueSource {
  readonly source: string
  readonly asOf: string
}

const DOCS = 'platform.claude.com/docs/en'

export const CLAUDE_SOURCE: CatalogueSource = {
  source: `${DOCS}: about-claude/pricing, build-with-claude/prompt-caching, build-with-claude/preserved-thinking, models`,
  asOf: '2026-10-10',
}

/** Source for older Claude models, which the provider's current pages no longer list. */
export const OLDER_CLAUDE_SOURCE: CatalogueSource = {
  source: `@pydantic/genai-prices 0.1.8 for prices; ${DOCS}: models and prompt-caching as of 2025 and early 2026`,
  asOf: '2026-09-23',
}

export const CLAUDE_5_2_SOURCE: CatalogueSource = {
  source: 'announcement of 2026-11-09 and its public summaries; @ai-sdk/anthropic 4.0.102',
  asOf: '2026-11-15',
}

export const OPENAI_SOURCE: CatalogueSource = {
  source:
    'developers.openai.com/api/docs: models and guides/prompt-caching; prices and limits as in @earendil-works/pi-ai 1.5.0',
  asOf: '2026-11-02',
}

export const GOOGLE_SOURCE: CatalogueSource = {
  source:
    'ai.google.dev/gemini-api/docs/caching for minima; prices and limits as in @earendil-works/pi-ai 1.5.0',
  asOf: '2026-11-02',
}
