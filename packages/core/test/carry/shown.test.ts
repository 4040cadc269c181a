/** What a view shows of carriers, kept up to date, is what is read off it anew. */

import { SessionBuilder } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  indexShownAttachments,
  isSameAttachmentText,
  NO_SHOWN_ATTACHMENTS,
  readAttachmentKey,
  type ShownAttachmentIndex,
  updateShownAttachments,
} from '../../src/sources/context-source.ts'

const acts = fc.array(fc.nat({ max: 7 }), { maxLength: 40 })

function act(builder: SessionBuilder, choice: number): void {
  const uuids = [...builder.view.entries].map(({ record }) => record.uuid)
  if (choice < 3) builder.attachment({ type: 'plan_mode', content: `${choice}`, key: `k${choice}:` })
  else if (choice === 3)
    builder.attachment({ type: 'agent_delta', items: { a: uuids.length.toString() }, key: 'list:delta' })
  else if (choice === 4) builder.user('hello')
  else if (choice === 5)
    builder.notice('microcompact_boundary', {
      microcompactMetadata: {
        trigger: 'auto',
        preTokens: 1,
        tokensSaved: 1,
        compactedToolIds: [],
        clearedAttachmentUUIDs: uuids.slice(0, 1),
      },
    })
  else if (choice === 6)
    builder.attachment({ type: 'file', filename: '/a', content: 'x' }, { isScreenOnly: true })
  else
    builder.batch(() => {
      builder.notice('compact_boundary', {
        parentUuid: null,
        compactMetadata: { trigger: 'auto', preTokens: 1 },
      })
      builder.user('Summary', { isCompactSummary: true })
    })
}

const plain = ({ byKey, items }: ShownAttachmentIndex) => ({ byKey, items })

describe('what is shown', () => {
  it('kept up to date equals what is read anew, after every record, rewrites included', () => {
    fc.assert(
      fc.property(acts, (choices) => {
        const builder = new SessionBuilder()
        let shown = NO_SHOWN_ATTACHMENTS
        for (const choice of choices) {
          act(builder, choice)
          shown = updateShownAttachments(shown, builder.view.entries)
          expect(plain(shown)).toEqual(plain(indexShownAttachments(builder.view.entries)))
        }
      }),
    )
  })

  it.each([
    [{ type: 'file', filename: '/a', content: 'x' }, 'files:/a'],
    [{ type: 'todo', content: 'x' }, 'todos:'],
    [{ type: 'nested_memory', path: '/CLAUDE.md' }, 'standing:/CLAUDE.md'],
    [{ type: 'task_status', taskId: 'a1' }, 'agents:a1'],
    [{ type: 'file' }, null],
    [{ type: 'ide_selection' }, null],
    [{}, null],
    [{ type: 'file', filename: '/a', key: 'mine:1' }, 'mine:1'],
  ])('%j has the key %s', (attachment, key) => {
    expect(readAttachmentKey(attachment)).toBe(key)
  })

  it('is the same where the model reads the same', () => {
    const todo = { type: 'todo', content: 'x' }
    expect(
      isSameAttachmentText(todo, { ...todo, context: 'post-compact', update: true, key: 'todos:' }),
    ).toBe(true)
    expect(isSameAttachmentText(todo, { ...todo, content: 'y' })).toBe(false)
  })
})
