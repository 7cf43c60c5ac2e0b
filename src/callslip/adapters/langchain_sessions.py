"""What middleware over sessions has in common: whose results a run's are, and whom they are about."""

from __future__ import annotations

from langchain_core.runnables import RunnableConfig

from callslip.adapters.langchain_scope import ScopeOf, SubjectOf, located
from callslip.governing import subjects_of
from callslip.handle import Scope
from callslip.session import Session
from callslip.store import ResultStore

__all__ = ["ScopeOf", "Sessions", "SubjectOf"]


class Sessions:
    """Finds the session of a run, by its config, its state and where in a graph it runs."""

    store: ResultStore

    def _found_by(
        self, store: ResultStore, scope: ScopeOf, subject: SubjectOf, shared: bool
    ) -> None:
        self.store = store
        self._scope_of, self._subject_of, self._shared = scope, subject, shared

    def scope(self, config: RunnableConfig, state: object = (), *, parent: bool = False) -> Scope:
        """Whose results those of this run are, at this place of the graph. For `store.session`."""
        return located(self._scope_of(config), config, state, shared=self._shared, parent=parent)

    def subjects(self, config: RunnableConfig) -> tuple[str, ...]:
        """Whom this run is about. Raises `SettingsError` for what is no name, nor several."""
        return subjects_of(self._subject_of(config))

    def session(
        self, config: RunnableConfig, state: object = (), *, parent: bool = False
    ) -> Session:
        """The session of this run at this place of the graph, for a tool or a node of your own.
        `parent` asks for that of the graph above."""
        at = self.scope(config, state, parent=parent)
        return Session(self.store, at, self.subjects(config))
