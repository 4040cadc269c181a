/** Sessions of plain work for tests, told in few words: prompts, edits, readings, commands, todo lists. */
import { Teller } from 'tidemark/testing'
import { isKnown, type KnownRecord } from '../../src/index.ts'

export class WorkedSession {
  readonly teller: Teller

  constructor(teller: Teller = new Teller('worked')) {
    this.teller = teller
  }

  says(text: string): string {
    return this.teller.user(text).uuid
  }

  answers(text: string): void {
    this.teller.assistant(this.teller.id('msg'), [{ type: 'text', text }])
  }

  calls(name: string, input: object, result: string, failed = false): void {
    const id = this.teller.id('call')
    this.teller.assistant(this.teller.id('msg'), [{ type: 'tool_use', id, name, input }])
    this.teller.user([
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
    this.teller.batch(() => {
      const boundary = this.teller.id('boundary')
      this.teller.notice('compact_boundary', {
        uuid: boundary,
        parentUuid: null,
        logicalParentUuid: this.teller.tip,
        compactMetadata: { trigger: 'manual', preTokens: 1 },
      })
      this.teller.user(summary, {
        parentUuid: boundary,
        isCompactSummary: true,
        isVisibleInTranscriptOnly: true,
      })
    })
  }

  get history(): readonly KnownRecord[] {
    const { branch, records } = this.teller.session
    return [...branch].flatMap((index) => records.at(index) ?? []).filter(isKnown)
  }
}
