/** Checks answers of the user to questions that the model asked through a tool, and converts them for the log. */
import { TidemarkError } from '@tidemark/core/errors'
import { isObject } from '@tidemark/core/log/json'
import type { RecordedUserInput } from '@tidemark/core/log/record'

/** An answer of the user to a question that the model asked through a tool. */
export interface UserAnswer {
  readonly question: string
  /** The options that the model offered. Default: none. */
  readonly options?: readonly string[]
  /** What the user chose or typed. */
  readonly text: string
}

/** Converts answers of the user to what is recorded with the tool result. Throws `bad-option` for values that are not answers. */
export function toRecordedAnswers(
  answers: readonly UserAnswer[],
  caller: string,
): readonly Omit<RecordedUserInput, 'toolUseId'>[] {
  const isAnswer = (value: unknown): boolean =>
    isObject(value) && typeof value.question === 'string' && typeof value.text === 'string'
  if (!Array.isArray(answers) || !answers.every(isAnswer))
    throw new TidemarkError(
      'bad-option',
      `${caller} gave answers: expected a list of { question, text }, each with options or not.`,
      { details: { option: 'answers' } },
    )
  return answers.map(({ question, options = [], text }) => ({
    kind: 'answer',
    text,
    question: { text: question, options: options.map(String) },
  }))
}
