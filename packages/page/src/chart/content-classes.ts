/** The kinds of content that the tide chart stacks, from the bottom up, with their names and colours. */
import type { PageModelRequest } from 'tidemark/report'

interface ContentClass {
  readonly key: string
  readonly label: string
  /** Fields of a request's `content` that belong to this kind. */
  readonly fields: readonly (keyof PageModelRequest['content'])[]
  /** Colour on a light background. */
  readonly light: string
  /** Colour on a dark background. */
  readonly dark: string
}

/** Kinds that stay longest in the context come first, at the bottom, so that a rewrite shows as a drop of the upper bands. */
export const CONTENT_CLASSES: readonly ContentClass[] = [
  { key: 'system', label: 'System prompt, tools', fields: ['system'], light: '#64748b', dark: '#64748b' },
  { key: 'summary', label: 'Summaries', fields: ['summaries'], light: '#d9467a', dark: '#f472b6' },
  { key: 'user', label: 'User', fields: ['human', 'localCommandOutput'], light: '#e09f1f', dark: '#fbbf24' },
  {
    key: 'attached',
    label: 'Attachments, media',
    fields: ['attachments', 'media', 'other'],
    light: '#a3a635',
    dark: '#bef264',
  },
  { key: 'thinking', label: 'Thinking', fields: ['thinking'], light: '#8b6fd6', dark: '#a78bfa' },
  { key: 'reply', label: 'Replies', fields: ['assistantText'], light: '#13a08f', dark: '#2dd4bf' },
  { key: 'calls', label: 'Tool calls', fields: ['toolRequests'], light: '#38a9dd', dark: '#67d3f8' },
  { key: 'results', label: 'Tool results', fields: ['toolResults'], light: '#2563c9', dark: '#4f8ef7' },
]

/** Returns the estimated tokens of one kind in a request. */
export function countClassTokens({ content }: PageModelRequest, { fields }: ContentClass): number {
  return fields.reduce((sum, field) => sum + (content[field] ?? 0), 0)
}
