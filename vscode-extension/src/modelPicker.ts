// Choosing the model: what the user picks becomes the setting, and the server restarts with it. And removing one.
import * as vscode from "vscode";
import { sayNotRunning } from "./actions";
import { SECTION } from "./configuration";
import type { ModelGetter } from "./modelGetter";
import {
  type Ask,
  addressProblem,
  findEndpoints,
  type ModelChoice,
  modelChoices,
  removalChoices,
  removalMessage,
  removalQuestion,
} from "./models";
import { type InstalledModel, readModels, readRemoved, SERVER_COMMANDS } from "./protocol";
import type { Server } from "./server";
import { withoutLinks } from "./state";

const TITLE = "fim-server: Choose a Model";
const REMOVE_TITLE = "fim-server: Remove a Model";
const REMOVE = "Remove";

/** Milliseconds that a port of this machine may take to answer. */
const PATIENCE = 1_000;

/** Milliseconds that the server may take to say what is installed: it may be starting, or an older one. */
const LISTING_PATIENCE = 5_000;

const GET_NAME = "smollm2";

/** Asks which model to complete with; nothing changes where the user leaves. */
export async function chooseModel(server: Server, getter: ModelGetter): Promise<void> {
  const configuration = vscode.workspace.getConfiguration(SECTION);
  const levels = configuration.inspect<string | null>("model");
  const listed = installedModels(server);
  const items = listed.then((installed) => grouped(modelChoices(configuration.get("model"), installed)));
  const chosen = await vscode.window.showQuickPick(items, { title: TITLE, matchOnDescription: true });
  if (chosen === undefined || chosen.value === undefined) {
    return;
  }
  const ask = typeof chosen.value === "object" && chosen.value !== null ? chosen.value.ask : undefined;
  if (ask === "remove") {
    await removeModel(server, await listed);
    return;
  }
  const value = ask === undefined ? (chosen.value as string | null) : await asked(ask, getter);
  if (value === undefined) {
    return;
  }
  // Where the workspace names a model, the change would have no effect for the user.
  const target =
    levels?.workspaceValue === undefined ? vscode.ConfigurationTarget.Global : vscode.ConfigurationTarget.Workspace;
  await configuration.update("model", value === null ? undefined : value, target);
}

/** Asks which of the installed models to remove, and whether that is meant. */
export async function removeModel(server: Server, known?: readonly InstalledModel[]): Promise<void> {
  const items = (known === undefined ? installedModels(server) : Promise.resolve(known)).then(removalChoices);
  if ((await items).length === 0) {
    void vscode.window.showInformationMessage("fim-server: no model is installed that could be removed.");
    return;
  }
  const chosen = await vscode.window.showQuickPick(items, { title: REMOVE_TITLE });
  if (chosen === undefined) {
    return;
  }
  const { name } = chosen.model;
  // Of one that is in use the server says why it stays.
  if (!chosen.model.inUse) {
    const question = removalQuestion(chosen.model);
    if ((await vscode.window.showWarningMessage(question, { modal: true }, REMOVE)) !== REMOVE) {
      return;
    }
  }
  const connection = await server.connected();
  if (connection === undefined) {
    sayNotRunning(server);
    return;
  }
  try {
    const told = removalMessage(readRemoved(await connection.execute(SERVER_COMMANDS.removeModel, [{ name }])));
    const show = told.isProblem ? vscode.window.showErrorMessage : vscode.window.showInformationMessage;
    void show(withoutLinks(told.message));
  } catch (error) {
    void vscode.window.showErrorMessage(withoutLinks(`fim-server: ${error instanceof Error ? error.message : error}`));
  }
}

/** What the server says is installed; nothing where there is none, or it does not say. Never fails. */
async function installedModels(server: Server): Promise<InstalledModel[]> {
  const ask = async () => readModels(await (await server.connected())?.execute(SERVER_COMMANDS.models, []));
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<InstalledModel[]>((resolve) => {
    timer = setTimeout(() => resolve([]), LISTING_PATIENCE);
  });
  const found = await Promise.race([ask().catch(() => []), late]);
  clearTimeout(timer);
  return found;
}

/** With a line between two groups. */
function grouped(choices: readonly ModelChoice[]): (vscode.QuickPickItem & { value?: ModelChoice["value"] })[] {
  return choices.flatMap((choice, index) => {
    const begins = choice.group !== "" && choice.group !== choices[index - 1]?.group;
    return [...(begins ? [{ label: choice.group, kind: vscode.QuickPickItemKind.Separator }] : []), choice];
  });
}

async function asked(what: Exclude<Ask["ask"], "remove">, getter: ModelGetter): Promise<string | undefined> {
  switch (what) {
    case "get":
      return (await getter.get()) ? GET_NAME : undefined;
    case "file": {
      const filters = { "GGUF files": ["gguf"] };
      const files = await vscode.window.showOpenDialog({ title: TITLE, filters, canSelectMany: false });
      return files?.[0]?.fsPath;
    }
    case "endpoints":
      return await askEndpoint();
    case "address": {
      const prompt = "http://HOST:PORT, and #MODEL behind it where there are several";
      const text = await vscode.window.showInputBox({ title: TITLE, prompt, validateInput: addressProblem });
      return text?.trim() || undefined;
    }
    default: {
      const prompt = "A folder with a model, or a name on the Hugging Face hub, which is then downloaded";
      const text = await vscode.window.showInputBox({ title: TITLE, prompt });
      return text?.trim() || undefined;
    }
  }
}

async function askEndpoint(): Promise<string | undefined> {
  const location = vscode.ProgressLocation.Notification;
  const looking = { location, title: "fim-server: looking for endpoints on this machine" };
  const found = await vscode.window.withProgress(looking, () => findEndpoints(getJson));
  if (found.length === 0) {
    void vscode.window.showInformationMessage(
      "fim-server: no endpoint answers on the usual ports of llama.cpp, Ollama, LM Studio and vLLM.",
    );
    return undefined;
  }
  const items = found.map((one) => ({
    label: one.model,
    description: `${one.kind}, ${one.address}`,
    address: one.address,
  }));
  return (await vscode.window.showQuickPick(items, { title: TITLE }))?.address;
}

async function getJson(url: string): Promise<unknown> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(PATIENCE), redirect: "error" });
    return response.ok ? await response.json() : undefined;
  } catch {
    return undefined;
  }
}
