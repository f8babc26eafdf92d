/** The name by which models change working memory. */
export const toolName = 'updateWorkingMemory'
