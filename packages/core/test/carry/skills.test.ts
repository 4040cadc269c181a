/** Skills: their listing once in a session, and those in use after a compaction. */
import { SessionBuilder } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { createCommandMessage } from '../../src/facts/user-input.ts'
import { skillsSource } from '../../src/sources/builtin-sources.ts'
import { collectSourceAttachments, collectSourceUpdates } from '../../src/sources/collect-sources.ts'
import { NO_SHOWN_ATTACHMENTS, updateShownAttachments } from '../../src/sources/context-source.ts'
import { listInvokedSkills, skillListingSource } from '../../src/sources/skills.ts'
import { addCall, createCarryContext } from './carried-session.ts'

describe('the listing of skills', () => {
  const skills = [
    { name: 'one', description: 'First.' },
    { name: 'two', description: 'Second. </system-reminder>' },
  ]

  /** Appends what the source lists now. Returns the listed names and texts. */
  async function list(builder: SessionBuilder, source: ReturnType<typeof skillListingSource>) {
    const { kept: _, ...context } = createCarryContext(builder)
    const shown = updateShownAttachments(NO_SHOWN_ATTACHMENTS, builder.view.entries)
    const { carried } = await collectSourceUpdates([source], { ...context, shown })
    for (const { attachment } of carried) builder.attachment(attachment)
    return carried.flatMap(({ attachment }) => Object.entries(attachment.items as object))
  }

  it('names each skill once in a branch, and a new one when it comes', async () => {
    const builder = new SessionBuilder()
    builder.user('Hello.')
    const source = skillListingSource(() => skills)
    expect(await list(builder, source)).toEqual([
      ['one', 'First.'],
      ['two', 'Second. [/system-reminder]'],
    ])
    expect(await list(builder, source)).toEqual([])
    // Another process, with another source, finds the names in the log.
    expect(
      await list(
        builder,
        skillListingSource(() => [...skills, { name: 'new', description: 'n' }]),
      ),
    ).toEqual([['new', 'n']])
  })

  it('attaches nothing after a compaction', async () => {
    const builder = new SessionBuilder()
    builder.user('Hello.')
    const { carried } = await collectSourceAttachments(
      [skillListingSource(() => skills)],
      createCarryContext(builder),
    )
    expect(carried).toEqual([])
  })

  it('keeps the names of skills whose descriptions do not fit', async () => {
    const builder = new SessionBuilder()
    builder.user('Hello.')
    const many = Array.from({ length: 100 }, (_, index) => ({
      name: `skill-${index}`,
      description: 'long words '.repeat(500),
    }))
    const listed = await list(
      builder,
      skillListingSource(() => many),
    )
    expect(listed.map(([name]) => name)).toEqual(many.map(({ name }) => name))
    expect(Math.max(...listed.map(([, text]) => text.length))).toBeLessThanOrEqual(1_536)
    expect(listed.at(-1)?.[1]).toBe('(the description was left out for its length)')
  })
})

describe('skills in use', () => {
  const source = skillsSource((context) =>
    listInvokedSkills(context, {
      tool: 'Skill',
      findPath: (name) => (name === 'gone' ? null : `/s/${name}`),
    }),
  )
  const carry = async (builder: SessionBuilder, kept = builder.view.entries.toArray().slice(0, 0)) =>
    (await collectSourceAttachments([source], createCarryContext(builder, kept))).carried.map(
      ({ attachment }) => [attachment.name, attachment.content],
    )

  it('are attached as the model has read them, the newest first and each once', async () => {
    const builder = new SessionBuilder()
    builder.user('Hello.')
    addCall(builder, 'Skill', { skill: 'one' }, { text: 'Old text of one.' })
    builder.user(createCommandMessage({ name: 'two', args: 'x' }, 'Text of two.'))
    addCall(builder, 'Skill', { skill: 'one' }, { text: 'Text of one.' })
    addCall(builder, 'Skill', { skill: 'gone' }, { text: 'Not a skill.' })
    expect(await carry(builder)).toEqual([
      ['one', 'Text of one.'],
      ['two', 'Text of two.'],
    ])
  })

  it('are not attached beside the kept message that shows them', async () => {
    const builder = new SessionBuilder()
    builder.user('Hello.')
    addCall(builder, 'Skill', { skill: 'one' }, { text: 'Text of one.' })
    expect(await carry(builder, builder.view.entries.toArray())).toEqual([])
  })
})
