/** Sessions of coding work: prompts, edits, file reads, commands, todo lists. */
import { SessionBuilder } from '@tidemark/core/testing'
import { isKnownRecord, type KnownRecord } from '../../src/log/record.ts'

export class CodingSession {
  readonly builder: SessionBuilder

  constructor(builder: SessionBuilder = new SessionBuilder('worked')) {
    this.builder = builder
  }

  says(text: string): string {
    return this.builder.user(text).uuid
  }

  answers(text: string): void {
    this.builder.answer(text)
  }

  calls(name: string, input: object, result: string, failed = false): void {
    this.builder.call(name, JSON.parse(JSON.stringify(input)), result, { isError: failed })
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

  /** A full compaction, as the engine writes it. */
  compacts(summary: string): void {
    this.builder.compact(summary)
  }

  get history(): readonly KnownRecord[] {
    const { branch, records } = this.builder.session
    return [...branch].flatMap((index) => records.at(index) ?? []).filter(isKnownRecord)
  }
}
