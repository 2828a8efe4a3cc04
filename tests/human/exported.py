"""Tasks of a made-up Label Studio export, in the documented layout of its JSON format."""

from typing import Any


def annotation(choice: str | None, user: Any = 1, lead_time: Any = 3.5, **changes: Any) -> dict[str, Any]:
    """Return an annotation; without a choice its result is empty."""
    result = {
        "value": {"choices": [choice]}, "id": "Dx_aB91ISN", "from_name": "choice", "to_name": "picture_1",
        "type": "choices", "origin": "manual",
    }  # fmt: skip
    return {
        "id": 1001, "completed_by": user, "result": [result] if choice else [], "was_cancelled": False,
        "ground_truth": False, "created_at": "2026-03-09T22:16:08.728353Z", "updated_at": "2026-03-09T22:16:09.028378Z",
        "draft_created_at": None, "lead_time": lead_time, "prediction": {}, "result_count": 1, "unique_id": "c0ffee",
        "import_id": None, "last_action": None, "bulk_created": False, "task": 7, "project": 3, "updated_by": 1,
        "parent_prediction": None, "parent_annotation": None, "last_created_by": None,
    } | changes  # fmt: skip


def export_task(task_id: Any, *annotations: Any) -> dict[str, Any]:
    """Return a task with its annotations."""
    return {
        "id": 7, "annotations": list(annotations), "file_upload": "0b1e2c3d-match.json", "drafts": [],
        "data": {"task_id": task_id, "picture_1": "data:image/png;base64,iVBORw0KGgo=", "text_1": "a red bird"},
        "predictions": [], "meta": {}, "created_at": "2026-03-09T21:52:49.513742Z",
        "updated_at": "2026-03-09T22:16:08.746926Z", "allow_skip": True,
        "inner_id": 1, "total_annotations": len(annotations), "cancelled_annotations": 0,
        "total_predictions": 0, "comment_count": 0, "unresolved_comment_count": 0, "last_comment_updated_at": None,
        "project": 3, "updated_by": 1, "comment_authors": [],
    }  # fmt: skip
