/** `tidemark/catalogue`: windows, limits and prices of models, with the day and source of each figure. */

export type { Catalogue, FoundModel, ModelEntry } from '@tidemark/wire'
export {
  createProviderProfile,
  lookUpModel,
  modelCatalogue,
  pricesAtDate,
  withModels,
} from '@tidemark/wire'
