/** Sessions of plain work for tests, told in few words: prompts, edits, readings, commands, todo lists. */
import { SessionBuilder } from '@tidemark/core/testing'
import { isKnown, type KnownRecord } from '../../src/index.ts'

export class WorkedSession {
  readonly builder: SessionBuilder

  constructor(builder: SessionBuilder = new SessionBuilder('worked')) {
    this.builder = builder
  }

  says(text: string): string {
    return this.builder.user(text).uuid
  }

  answers(text: string): void {
    this.builder.assistant(this.builder.id('msg'), [{ type: 'text', text }])
  }

  calls(name: string, input: object, result: string, failed = false): void {
    const id = this.builder.id('call')
    this.builder.assistant(this.builder.id('msg'), [{ type: 'tool_use', id, name, input }])
    this.builder.user([
      { type: 'tool_result', tool_use_id: id, content: result, ...(failed ? { is_error: true } : {}) },
    ])
  }

  edits(path: string, put: string, failed = false): void {
    this.calls(
      'Edit',
      { file_path: path, old_string: 'before', new_string: put },
      'The file was updated.',
      failed,
    )
  }

  reads(path: string, content: string): void {
    this.calls('Read', { file_path: path }, content)
  }

  runs(command: string, output: string, failed = false): void {
    this.calls('Bash', { command }, output, failed)
  }

  lists(todos: readonly { readonly content: string; readonly status: string }[]): void {
    this.calls('TodoWrite', { todos }, 'Noted.')
  }

  /** As the engine would write it: a boundary and a summary in its place. */
  compacts(summary: string): void {
    this.builder.batch(() => {
      const boundary = this.builder.id('boundary')
      this.builder.notice('compact_boundary', {
        uuid: boundary,
        parentUuid: null,
        logicalParentUuid: this.builder.tip,
        compactMetadata: { trigger: 'manual', preTokens: 1 },
      })
      this.builder.user(summary, {
        parentUuid: boundary,
        isCompactSummary: true,
        isVisibleInTranscriptOnly: true,
      })
    })
  }

  get history(): readonly KnownRecord[] {
    const { branch, records } = this.builder.session
    return [...branch].flatMap((index) => records.at(index) ?? []).filter(isKnown)
  }
}
