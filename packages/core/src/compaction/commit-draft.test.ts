import { SessionBuilder } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { createToolResultRules } from '../clearing/tool-result-index.ts'
import { AppendList } from '../log/persistent-collections.ts'
import { DEFAULT_POLICY } from '../policy/create-policy.ts'
import { createDefaultWeights, createEstimator } from '../tokens/estimator.ts'
import { findReleasedContent } from './commit-draft.ts'

describe('what left the view', () => {
  it('is what no kept message shows', () => {
    const { estimate, clear } = DEFAULT_POLICY
    const estimator = createEstimator(createDefaultWeights(estimate))
    const rules = createToolResultRules({ estimator, policy: clear, largeInput: 1_000 })
    const builder = new SessionBuilder('told')
    builder.user('go')
    for (const [id, path] of [
      ['c1', '/a'],
      ['c2', '/b'],
      ['c3', '/a'],
    ] as const) {
      builder.assistant(`m-${id}`, [{ type: 'tool_use', id, name: 'Read', input: { file_path: path } }])
      builder.result(id, 'text')
    }
    const { entries } = builder.view
    expect(findReleasedContent(entries, AppendList.of(entries.toArray(5)), rules)).toEqual({
      toolUseIds: ['c1', 'c2'],
      filePaths: ['/b'],
    })
  })

  it('is a file of which only a part is still shown', () => {
    const { estimate, clear } = DEFAULT_POLICY
    const estimator = createEstimator(createDefaultWeights(estimate))
    const rules = createToolResultRules({ estimator, policy: clear, largeInput: 1_000 })
    const builder = new SessionBuilder('told')
    builder.user('go')
    for (const [id, input] of [
      ['c1', { file_path: '/a' }],
      ['c2', { file_path: '/a', offset: 10, limit: 5 }],
    ] as const) {
      builder.assistant(`m-${id}`, [{ type: 'tool_use', id, name: 'Read', input }])
      builder.result(id, 'text')
    }
    const { entries } = builder.view
    expect(findReleasedContent(entries, AppendList.of(entries.toArray(3)), rules)).toEqual({
      toolUseIds: ['c1'],
      filePaths: ['/a'],
    })
  })
})
